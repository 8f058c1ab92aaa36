"""`traindx signal`: what was measured of each layer beside what theory says, and right gains."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict

from rich.text import Text

from traindx.facts import Json
from traindx.messages import Message, counted, listed, say
from traindx.report.story import number
from traindx.report.text import Layout, painted
from traindx.report.untrusted import plain, told
from traindx.report.wrapping import clipped, columns, padded, width_of
from traindx.signal.layers import Pooled, Signal, Weighted
from traindx.signal.profile import Expected, Passage
from traindx.signal.propagation import Propagation
from traindx.signal.repair import Repaired

_DARK = 1e-12
"""Shares under which rounding decides."""
_WRONG = 0.05
"""Relative error of a gain from which it is told."""
_NAMED = 4
"""Layers whose weights are told to be multiplied, at most: all stand in the table."""
_STEEP = 1.02
"""Growth in each layer from which a gain is said not to hold its variance."""


def render(
    shown: Propagation, *, width: int = 88, color: bool = False, language: str = "en"
) -> str:
    """The picture as text."""
    page = _Page(max(width, 60), language)
    return painted(page.lines(shown), color=color)


def document(shown: Propagation) -> str:
    """The picture as JSON; numbers that are not finite are strings."""
    content: dict[str, Json] = {
        "schema": 1,
        "target": shown.target,
        "samples": shown.samples,
        "training": shown.training,
        "variance": shown.variance,
        "first_gradient_over_last": None
        if shown.fall is None
        else {key: _json(value) for key, value in asdict(shown.fall).items()},
        "jacobian_bound": _json(shown.bound),
        "layers": [_entry(*row) for row in _rows(shown)],
        "activations": [
            {key: _json(value) for key, value in asdict(each).items()} for each in shown.stabilities
        ],
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _rows(shown: Propagation) -> list[tuple[Passage, Expected, Repaired]]:
    """All modules, and the functions whose output one of them takes."""
    used = {source for passage in shown.passages for source in passage.sources}
    rows = zip(shown.passages, shown.expected, shown.repaired, strict=True)
    return [row for i, row in enumerate(rows) if row[0].fqn or row[0].made or i in used]


def _entry(passage: Passage, theory: Expected, repaired: Repaired) -> dict[str, Json]:
    gain = _gain(passage)
    return {
        "fqn": passage.fqn,
        "kind": passage.kind,
        "call": passage.call,
        "output": _moments(passage.made),
        "expected": _moments(theory.chained),
        "expected_from_measured_input": _moments(theory.local),
        "gradient_rms": _json(_root(passage.gradient)),
        "expected_gradient_rms": _json(_root(theory.gradient)),
        "backward": _json(passage.backward),
        "expected_backward": _json(theory.backward),
        "gain": _json(gain),
        "right_gain": _json(repaired.gain),
        "multiply_weights_by": _json(repaired.gain / gain if repaired.gain and gain else None),
        "gradient_rms_with_right_gains": _json(_root(repaired.gradient)),
        "not_expected": passage.reason or None,
        "starts_anew": theory.restarts or None,
    }


def _gain(passage: Passage) -> float | None:
    return passage.layer.gain if isinstance(passage.layer, Weighted) else None


def _moments(signal: Signal | None) -> Json:
    if signal is None:
        return None
    return {"rms": _json(signal.rms), "mean": _json(signal.mean), "share": _json(signal.share)}


def _json(value: object) -> Json:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float) else None


def _root(square: float | None) -> float | None:
    return None if square is None else math.sqrt(square)


class _Page(Layout):
    """The layout of the picture."""

    def lines(self, shown: Propagation) -> Iterator[Text]:
        yield from self.title(_headline(shown))
        yield Text()
        yield from self._table(shown)
        yield from self.list(say("what this says"), list(_sayings(shown)))
        yield from self.list(say("not predicted"), list(_unpredicted(shown)))

    def _table(self, shown: Propagation) -> Iterator[Text]:
        heads = [
            *(say("output RMS"), say("theory"), say("share"), say("theory")),
            *(say("gradient"), say("theory"), say("gain"), say("right")),
        ]
        rows = _rows(shown)
        table = columns([told(head, self.language) for head in heads], [_cells(*r) for r in rows])
        names = [_name(passage) for passage, _, _ in rows]
        room = max(12, self.width - 2 - width_of(table[0]))
        name = min(max(map(width_of, names)), room)
        yield Text.assemble("  ", (" " * name + table[0], "bold"))
        for label, cells, (passage, _, _) in zip(names, table[1:], rows, strict=True):
            line = padded(clipped(label, name), name) + cells
            yield Text.assemble("  ", (line, "" if passage.made else "dim"))


def _name(passage: Passage) -> str:
    if passage.made is None:
        return f"  {passage.kind}"
    call = f" #{passage.call}" if passage.call > 1 else ""
    return plain(f"{passage.fqn or '.'} {passage.kind}") + call


def _cells(passage: Passage, theory: Expected, repaired: Repaired) -> list[str]:
    chained = theory.chained
    return [
        _number(passage.made and passage.made.rms),
        _number(chained and chained.rms),
        _share(passage.made),
        _share(chained),
        _number(_root(passage.gradient)),
        _number(_root(theory.gradient)),
        _number(_gain(passage)),
        _number(repaired.gain),
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _share(signal: Signal | None) -> str:
    if signal is None or math.isnan(signal.share):
        return "-"
    return f"{signal.share:.2g}" if signal.share >= _DARK else f"<{_DARK:g}"


# -- in words -------------------------------------------------------------------------------------


def _headline(shown: Propagation) -> Message:
    weighted = sum(isinstance(passage.layer, Weighted) for passage in shown.passages)
    parts = [counted(weighted, "{n} layer with weights", "{n} layers with weights")]
    if shown.samples is not None:
        parts.append(counted(shown.samples, "a batch of {n} sample", "a batch of {n} samples"))
    modes = {
        True: say("in training"),
        False: say("in evaluation"),
        None: say("partly in training"),
    }
    parts.append(modes[shown.training])
    return say("{target}: {parts}", target=plain(shown.target), parts=listed(parts))


def _sayings(shown: Propagation) -> Iterator[Message]:
    yield from _of_gradient(shown)
    yield from _of_share(shown)
    if shown.bound is not None:
        yield say(
            "no change of the input can change the output by more than {bound} times as much: the "
            "product of the spectral norms and the steepest slopes",
            bound=number(shown.bound),
        )
    yield from _of_repair(shown)
    yield from _of_gains(shown)
    yield say(
        "share: the part of the mean square that depends on the sample; gain: RMS of a weight "
        "times the root of its fan-in; gradient: RMS, of a random direction at the output"
    )


def _of_repair(shown: Propagation) -> Iterator[Message]:
    """What to multiply weights by, and what for."""
    factors = {
        passage.fqn or passage.kind: repaired.gain / gain
        for passage, _, repaired in _rows(shown)
        if (gain := _gain(passage)) and repaired.gain and math.isfinite(gain)
    }
    wrong = {name: by for name, by in factors.items() if abs(math.log(by)) > _WRONG}
    if not wrong:
        return
    first = [
        say("{layer} by {factor}", layer=plain(name), factor=f"{by:.3g}")
        for name, by in list(wrong.items())[:_NAMED]
    ]
    rest = len(wrong) - len(first)
    each = listed(first) if rest <= 0 else say("{some}, and {n} more", some=listed(first), n=rest)
    yield say(
        "for a mean square of {variance} behind each layer, multiply the weights of {each}",
        variance=number(shown.variance),
        each=each,
    )


def _of_gradient(shown: Propagation) -> Iterator[Message]:
    fall = shown.fall
    if fall is None:
        return
    measured = number(fall.measured)
    if fall.theory is None:
        yield say(
            "the gradient at the first layer is {measured} times that at the last",
            measured=measured,
        )
        return
    yield say(
        "the gradient at the first layer is {measured} times that at the last; theory says "
        "{theory}",
        measured=measured,
        theory=number(fall.theory),
    )
    if fall.repaired is not None and any(each.gain for each in shown.repaired):
        yield say("with the right gains it would be {mended} times", mended=number(fall.repaired))


def _of_share(shown: Propagation) -> Iterator[Message]:
    last = [passage for passage in shown.passages if passage.made is not None][-1]
    assert last.made is not None, "chosen for it"
    if last.made.share < 0.01 and (shown.samples or 0) > 1:
        yield say(
            "of what leaves {layer}, {share} depends on the sample: the rest is the same for every "
            "input",
            layer=plain(last.fqn or last.kind),
            share=_share(last.made),
        )


def _of_gains(shown: Propagation) -> Iterator[Message]:
    for each in shown.stabilities:
        if each.slope > _STEEP:
            yield say(
                "{name}: the gain {gain} keeps a mean square of {variance}, but not firmly: a "
                "deviation grows {slope} times in each layer",
                name=each.name,
                gain=f"{each.gain:.4g}",
                variance=number(shown.variance),
                slope=f"{each.slope:.3g}",
            )
        if not 1 / _STEEP < each.chi < _STEEP:
            yield say(
                "{name}: with the gain {gain}, a gradient's mean square is multiplied by {chi} in "
                "each layer",
                name=each.name,
                gain=f"{each.gain:.4g}",
                chi=f"{each.chi:.3g}",
            )


def _unpredicted(shown: Propagation) -> Iterator[Message]:
    for passage, theory, _ in _rows(shown):
        if passage.made is None:
            continue
        name = _name(passage)
        if passage.layer is None:
            yield say(
                "{layer}: {reason}; theory goes on from its output as measured",
                layer=name,
                reason=passage.reason,
            )
        elif passage.tied:
            yield say(
                "{layer}: theory takes its weights as independent of its input, and they are those "
                "of {other}",
                layer=name,
                other=plain(passage.tied),
            )
        elif isinstance(passage.layer, Pooled):
            yield say(
                "{layer}: theory takes what it does to a mean square from the measured one",
                layer=name,
            )
        elif theory.chained is None:
            yield say("{layer}: {reason}", layer=name, reason=theory.restarts)
        elif theory.restarts:
            yield say(
                "{layer}: theory starts from the input as measured, as {reason}",
                layer=name,
                reason=theory.restarts,
            )
    missing = [p.fqn or p.kind for p in shown.passages if p.made and p.gradient is None]
    if missing:
        yield say("no gradient arrived at {layers}", layers=listed(map(plain, missing)))
