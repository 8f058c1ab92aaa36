"""The curves that show a finding, with its threshold and the steps it was seen at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from traindx.findings import Finding
from traindx.messages import Message, say
from traindx.quantities import QUANTITIES
from traindx.records import Site
from traindx.report.figures.canvas import Canvas, series
from traindx.report.figures.depth import Depth, depth_figure, marked
from traindx.report.figures.layers import thinned
from traindx.report.figures.panels import Line, Panel, band, stacked
from traindx.report.figures.thinning import spread
from traindx.report.story import at_step, number
from traindx.report.untrusted import plain

_MOST_CURVES = 6


def evidence_figures(canvas: Canvas, finding: Finding) -> Iterator[Any]:
    """One figure for each quantity that shows it and was measured: along the depth, over steps."""
    yield from _profiles(canvas, finding)
    for quantity in finding.evidence.series:
        if not _is_drawn(quantity):
            continue
        lines = _lines(canvas, quantity, finding.evidence.site)
        if not lines:
            continue
        name, threshold = threshold_of(quantity, finding)
        panel = Panel("", lines, threshold, canvas.words(say("threshold")), height=180)
        figure = stacked(canvas, [panel], [band(finding.first_step, finding.last_step)])
        words = map(canvas.words, _caption(canvas, quantity, name, threshold))
        yield {"title": quantity, "caption": " ".join(words), "figure": figure}


def _is_drawn(quantity: str) -> bool:
    """Whether it is a number a step; a run file may name anything."""
    known = QUANTITIES.get(quantity)
    return known is not None and not known.entries


def _profiles(canvas: Canvas, finding: Finding) -> Iterator[Any]:
    evidence = finding.evidence
    model = canvas.run.models.get(evidence.site.model)
    if model is None:
        return
    for quantity in evidence.profiles:
        if not _is_drawn(quantity):
            continue
        depth = Depth(canvas.run, model, quantity, at=evidence.step)
        if len(depth.layers) < 2:
            continue
        figure = depth_figure(canvas, depth, depth.steps)
        ring = marked(canvas, depth, evidence.site, plain(finding.code))
        figure["data"] += [ring] if ring else []
        words = [say("Ring: where the finding stands.")] if ring else []
        words += [depth.theory] if depth.theory else []
        title = say(
            "{quantity} along the depth, {when}", quantity=quantity, when=at_step(depth.steps[0])
        )
        caption = " ".join(map(canvas.words, words))
        yield {"title": canvas.words(title), "caption": caption, "figure": figure}


def _caption(
    canvas: Canvas, quantity: str, name: str, threshold: float | None
) -> Iterator[Message]:
    yield say("Shaded: where the rule saw it.")
    if threshold is not None:
        yield say("Dashed: threshold {name} {value}.", name=name, value=number(threshold))
    table = canvas.table(quantity)
    if table and table.is_thinned:
        yield thinned(len(table.steps) // 2, table.measured)


def _lines(canvas: Canvas, quantity: str, site: Site) -> tuple[Line, ...]:
    """At the site; else of the parameters it holds; else of its model as a whole, as the loss."""
    table = canvas.table(quantity)
    if table is None:
        return ()
    exact = [s for s in (site, Site(site.model)) if s in table.places][:1]
    of_model = [s for s in table.sites if site.model in s.models]
    held = [s for s in of_model if s.fqn and s.fqn.rpartition(".")[0] == site.fqn]
    under = [s for s in of_model if s.fqn and s.fqn.startswith(f"{site.fqn}." if site.fqn else "")]
    whole = [s for s in of_model if not s.fqn]
    chosen = spread(exact or held or whole[:1] or under, _MOST_CURVES)
    rows = ((s, series(canvas, quantity, s)) for s in chosen)
    return tuple(Line(str(s), *row) for s, row in rows if row)


def threshold_of(quantity: str, finding: Finding) -> tuple[str, float | None]:
    """The threshold a quantity is held against: `gap` is that of `norm.running_gap`."""
    statistic = quantity.rpartition(".")[2]
    for name, value in finding.thresholds.items():
        if name == statistic or statistic.endswith(f"_{name}"):
            return plain(name), value
    return "", None
