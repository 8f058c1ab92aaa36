"""How large the updates are, relative to the parameters, over steps."""

from __future__ import annotations

import numpy as np

from traindx.messages import Message, say
from traindx.records import Site
from traindx.report.figures.canvas import Canvas, Figure, faulty, series
from traindx.report.figures.panels import Line, Panel, stacked
from traindx.report.figures.site import GUIDE
from traindx.report.figures.thinning import spread
from traindx.report.layers import layers
from traindx.report.story import judged

MOST = 24
# From first (dark) to last (bright), and visible on light and on dark ground.
_SCALE = ((38, 88, 153), (86, 130, 166), (125, 140, 122), (178, 150, 66), (222, 164, 30))


def updates_figure(canvas: Canvas) -> Figure | None:
    """The update ratio of each layer's largest parameter; None if none was measured."""
    chosen, _ = _sites(canvas)
    drawn: list[Line] = []
    for i, site in enumerate(chosen):
        row = series(canvas, "update.ratio", site)
        if row:
            color = _color(i / max(1, len(chosen) - 1))
            drawn.append(Line(str(site), *row, color=color, dash="solid", quiet=len(chosen) > 6))
    if not drawn:
        return None
    title = "update.ratio"
    guide = canvas.words(say("guide"))
    return stacked(canvas, [Panel(title, tuple(drawn), GUIDE, guide, height=260)])


def updates_words(canvas: Canvas) -> list[Message]:
    """What the figure shows and leaves out."""
    chosen, all_of = _sites(canvas)
    said = [
        say(
            "RMS of each step's change over the RMS of the parameter, of each layer's largest "
            "parameter, from the first layer (blue) to the last (yellow). Dashed: about 1e-3, a "
            "guide and no rule (CS231n, Neural Networks Part 3)."
        )
    ]
    if len(chosen) < all_of:
        said.append(say("Shows {shown} of {layers} layers, those with findings among them.",
                        shown=len(chosen), layers=all_of))  # fmt: skip
    return said


def _sites(canvas: Canvas) -> tuple[list[Site], int]:
    table = canvas.table("update.ratio")
    there = set(table.sites) if table else set[Site]()
    found = [layer.main_param for model in canvas.run.models.values() for layer in layers(model)]
    sites = [site for site in found if site and site in there]
    bad = faulty(judged(canvas.run).findings)
    first = [s for s in sites if s in bad or Site(s.model, s.fqn.rpartition(".")[0]) in bad]
    kept = set(spread(first, MOST // 2))
    others = [site for site in sites if site not in kept]
    kept |= set(spread(others, MOST - len(kept)))
    return [site for site in sites if site in kept], len(sites)


def _color(place: float) -> str:
    at = place * (len(_SCALE) - 1)
    i = min(int(at), len(_SCALE) - 2)
    parts = [round(np.interp(at - i, [0, 1], [a, b]))
             for a, b in zip(_SCALE[i], _SCALE[i + 1], strict=True)]  # fmt: skip
    return f"rgb({parts[0]},{parts[1]},{parts[2]})"
