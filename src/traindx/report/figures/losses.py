"""Losses, learning rates and what the script logged, with what happened, on one axis of steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from traindx.messages import Message, say
from traindx.records import Event, EventKind
from traindx.report.figures.canvas import Canvas, Figure, series
from traindx.report.figures.panels import Line, Panel, stacked
from traindx.report.figures.thinning import spread
from traindx.report.untrusted import plain

_MOST_MARKS = 80
_MOST_LOGGED = 8
_SYMBOLS = {
    EventKind.EVALUATION: "line-ns-open",
    EventKind.AMP_SKIPPED: "x-thin-open",
    EventKind.CADENCE: "diamond-open",
    EventKind.NOTE: "square-open",
    EventKind.ORIGIN: "star",
}


def _names() -> dict[EventKind, Message]:
    return {
        EventKind.EVALUATION: say("evaluation"),
        EventKind.AMP_SKIPPED: say("skipped by AMP"),
        EventKind.CADENCE: say("cadence"),
        EventKind.NOTE: say("note"),
        EventKind.ORIGIN: say("origin"),
    }


def loss_figure(canvas: Canvas) -> Figure | None:
    """Everything that was followed over the run as a whole; None if nothing was."""
    panels = [*_panels(canvas)]
    if not panels:
        return None
    events = _events(canvas)
    return stacked(canvas, [*panels, *([events] if events else [])])


def _panels(canvas: Canvas) -> Iterator[Panel]:
    if canvas.run.steps < 2:
        return  # points, and no course
    losses = loss_lines(canvas)
    if losses:
        yield Panel(canvas.words(say("loss")), losses, height=210)
    rates = lines(canvas, "lr")
    if rates:
        yield Panel(canvas.words(say("learning rate")), rates, height=80)
    for line in lines(canvas, "logged")[:_MOST_LOGGED]:
        yield Panel(plain(line.name), (line,), height=80)


def loss_lines(canvas: Canvas) -> tuple[Line, ...]:
    """The losses, if one of them has a course: a single point shows nothing."""
    found = lines(canvas, "loss")
    return found if any(len(line.steps) > 1 for line in found) else ()


def lines(canvas: Canvas, quantity: str) -> tuple[Line, ...]:
    """A quantity of the run as a whole: one curve for each site it was written of."""
    found = canvas.table(quantity)
    drawn: list[Line] = []
    for site in found.sites if found else ():
        row = series(canvas, quantity, site)
        if row:
            drawn.append(Line(str(site), *row))
    return tuple(drawn)


def events_left_out(canvas: Canvas) -> Message | None:
    """What to say if not every event is drawn."""
    if all(len(canvas.run.events(kind)) <= _MOST_MARKS for kind in _SYMBOLS):
        return None
    return say("Of more than {most} events of one kind, evenly spaced ones.", most=_MOST_MARKS)


def _events(canvas: Canvas) -> Panel | None:
    """One row of marks for each kind of event."""
    drawn: list[Line] = []
    ticks: list[str] = []
    for kind, name in _names().items():
        happened = spread(canvas.run.events(kind), _MOST_MARKS)
        if not happened:
            continue
        steps = np.array([event.step for event in happened], np.int64)
        values = np.full(len(steps), float(len(ticks)))
        texts = tuple(canvas.words(_told(event)) for event in happened)
        drawn.append(Line("", steps, values, "#6b757b", "markers", _SYMBOLS[kind], texts))
        ticks.append(canvas.words(name))
    if not drawn:
        return None
    return Panel(canvas.words(say("events")), tuple(drawn), height=8 + 20 * len(ticks),
                 ticks=tuple(ticks))  # fmt: skip


def _told(event: Event) -> Message:
    detail = {name: _escaped(value) for name, value in event.detail.items()}
    match event.kind:
        case EventKind.EVALUATION:
            forwards = detail.get("forwards", "?")
            return say("evaluation: {forwards} forward passes", forwards=forwards)
        case EventKind.AMP_SKIPPED:
            return say("GradScaler skipped this step")
        case EventKind.CADENCE:
            every, reason = detail.get("every", "?"), Message(detail.get("reason", ""))
            return say("measured every {every} steps: {reason}", every=every, reason=reason)
        case EventKind.ORIGIN:
            what = detail.get("operation") or Message(detail.get("reason", ""))
            return say("first not finite at {site}: {what}", site=_escaped(str(event.site)),
                       what=what)  # fmt: skip
        case _:
            return say("{text}", text=Message(detail.get("text", "")))


def _escaped(value: Any) -> str:
    text = plain(str(value)).replace("&", "&amp;").replace("<", "&lt;")
    return f"{text[:159]}…" if len(text) > 160 else text
