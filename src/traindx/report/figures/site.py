"""Everything measured at one place, over steps that are the loss's as well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx.messages import say
from traindx.records import Site
from traindx.report.figures.canvas import Canvas, Figure, series
from traindx.report.figures.losses import loss_lines
from traindx.report.figures.panels import Line, Panel, stacked
from traindx.report.layers import Layer

GUIDE = 1e-3
"""What an update ratio is compared with (CS231n, "Neural Networks Part 3")."""

GAP = 0.5
"""The default threshold of N001 for `norm.running_gap`."""

MAIN = (
    ("output.rms",),
    ("output_grad.rms",),
    ("grad.rms",),
    ("applied_grad.rms",),
    ("param.rms",),
    ("update.ratio",),
    ("norm.running_gap",),
)
"""What a person looks at first, a panel each."""

REST = (
    ("output.mean", "output.std", "output.min", "output.max"),
    ("input.mean", "input.rms", "input.min", "input.max"),
    ("output.zero_fraction", "units.dead_fraction"),
    ("output.batch_share",),
    ("attention.entropy", "attention.entropy_min"),
    ("attention.logit_min", "attention.logit_max"),
    ("output.nonfinite",),
    ("output_grad.mean", "output_grad.std", "output_grad.min", "output_grad.max"),
    ("output_grad.nonfinite",),
    ("grad.mean",),
    ("grad.std",),
    ("grad.min", "grad.max"),
    ("grad.nonfinite",),
    ("grad.absent",),
    ("applied_grad.min", "applied_grad.max"),
    ("norm.running_change", "norm.variance_noise"),
    ("norm.initial_weight",),
    ("norm.updates", "norm.training"),
    ("norm.tracked",),
    ("input.zero_fraction",),
    ("batch.size",),
)
"""The rest; what follows from these by a constant (counts, Euclidean norms) is left out."""

_CALM = ("nonfinite", "absent")


def layer_sites(layer: Layer) -> list[Site]:
    """A layer and its parameters."""
    return [layer.site, *(Site(layer.site.model, param.fqn) for param in layer.params)]


def site_figure(
    canvas: Canvas,
    sites: Sequence[Site],
    groups: Sequence[Sequence[str]],
    *,
    gap: float = GAP,
    with_loss: bool = True,
) -> Figure | None:
    """A panel for each group of quantities that was measured there, below the loss."""
    panels = [*_panels(canvas, sites, groups, gap)]
    if not panels:
        return None
    return stacked(canvas, [*(_loss(canvas) if with_loss else ()), *panels])


def _loss(canvas: Canvas) -> Iterator[Panel]:
    drawn = loss_lines(canvas)
    if drawn:
        yield Panel(canvas.words(say("loss")), drawn, height=70, marks_broken=False)


def _panels(
    canvas: Canvas,
    sites: Sequence[Site],
    groups: Sequence[Sequence[str]],
    gap: float,
) -> Iterator[Panel]:
    for group in groups:
        drawn = [*_lines(canvas, sites, group)]
        if not drawn or _is_calm(group, [line for _, line in drawn]):
            continue
        level, name = _level(canvas, group, gap)
        height = 100 if len(groups) > 1 else 240
        yield Panel(_title(drawn), tuple(line for _, line in drawn), level, name, height)


def _title(drawn: Sequence[tuple[str, Line]]) -> str:
    """The quantity, or what the quantities have in common; the legend tells them apart."""
    quantities = {quantity for quantity, _ in drawn}
    if len(quantities) == 1:
        return quantities.pop()
    points = {quantity.partition(".")[0] for quantity in quantities}
    return points.pop() if len(points) == 1 else ""


def _is_calm(group: Sequence[str], drawn: Sequence[Line]) -> bool:
    """Counts of what is wrong, where nothing ever was."""
    counted = group[0].rpartition(".")[2] in _CALM
    return counted and not any(np.any(line.values != 0) for line in drawn)


def _lines(
    canvas: Canvas, sites: Sequence[Site], group: Sequence[str]
) -> Iterator[tuple[str, Line]]:
    for quantity in group:
        for site in sites:
            row = series(canvas, quantity, site)
            if row:
                yield quantity, Line(_name(sites, site, quantity, group), *row)


def _name(sites: Sequence[Site], site: Site, quantity: str, group: Sequence[str]) -> str:
    own = site.fqn.removeprefix(f"{sites[0].fqn}.") if site != sites[0] else ""
    which = quantity.rpartition(".")[2] if len(group) > 1 else ""
    return " ".join(part for part in (own, which) if part) or str(site)


def _level(canvas: Canvas, group: Sequence[str], gap: float) -> tuple[float | None, str]:
    if group[0] == "update.ratio":
        return GUIDE, canvas.words(say("guide"))
    if group[0] == "norm.running_gap":
        return gap, canvas.words(say("threshold of N001"))
    return None, ""
