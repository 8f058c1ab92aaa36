"""`traindx norm recalibrate` and `traindx norm fold`: what was done, with the proof."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from traindx.facts import Json
from traindx.messages import Message, counted, listed, say
from traindx.report.story import number
from traindx.report.text import Layout, painted
from traindx.report.untrusted import plain, told
from traindx.report.wrapping import clipped, columns, padded, width_of

_COLUMN = 14


@dataclass(frozen=True, slots=True)
class Recalibrated:
    """What recalibration is shown as.

    Attributes:
        layers: Name, elements of each channel, and the gap before, of each layer.
        batches: Batches that went in.
        skipped: Batches left out since they were not finite.
        uncalled: Layers that no batch reached.
        scores: What the user's own evaluation gave before and after; None without one.
        saved: The file written; empty if none was.
    """

    layers: Sequence[tuple[str, int, float]]
    batches: int
    skipped: int
    uncalled: Sequence[str]
    scores: tuple[float, float] | None
    saved: str


def recalibrated(shown: Recalibrated, *, width: int, color: bool, language: str) -> str:
    """The layers by the gap they had, and the scores."""
    return painted(_Page(max(width, 60), language).recalibrated(shown), color=color)


def recalibration_document(shown: Recalibrated) -> str:
    """The same as JSON."""
    layers: list[Json] = [
        {"fqn": fqn, "elements": elements, "gap": _json(gap)} for fqn, elements, gap in shown.layers
    ]
    content: dict[str, Json] = {
        "schema": 1,
        "layers": layers,
        "batches": shown.batches,
        "skipped": shown.skipped,
        "uncalled": list(shown.uncalled),
        "scores": None if shown.scores is None else [_json(score) for score in shown.scores],
        "saved": shown.saved or None,
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _json(value: float) -> Json:
    return value if value - value == 0 else str(value)


@dataclass(frozen=True, slots=True)
class FoldedModel:
    """What folding is shown as.

    Attributes:
        pairs: The layer and the norm of each pair made one.
        refused: The norm and the reason of each that stays.
        difference: Greatest difference of an output.
        allowed: What rounding may make of it.
        saved: The file written; empty if none was.
    """

    pairs: Sequence[tuple[str, str]]
    refused: Sequence[tuple[str, str]]
    difference: float
    allowed: float
    saved: str


def folded(shown: FoldedModel, *, width: int, color: bool, language: str) -> str:
    """The pairs, what stays and why, and the proof."""
    return painted(_Page(max(width, 60), language).folded(shown), color=color)


def folding_document(shown: FoldedModel) -> str:
    """The same as JSON."""
    content: dict[str, Json] = {
        "schema": 1,
        "folded": [{"layer": layer, "norm": norm} for layer, norm in shown.pairs],
        "refused": [{"norm": norm, "reason": str(reason)} for norm, reason in shown.refused],
        "difference": _json(shown.difference),
        "allowed": _json(shown.allowed),
        "saved": shown.saved or None,
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


class _Page(Layout):
    """The layout of both."""

    def recalibrated(self, shown: Recalibrated) -> Iterator[Text]:
        layers = counted(len(shown.layers), "{n} layer", "{n} layers")
        batches = counted(shown.batches, "{n} batch", "{n} batches")
        yield from self.title(
            say("{layers} recalibrated on {batches}", layers=layers, batches=batches)
        )
        yield Text()
        yield from self._gaps(shown)
        yield from self.list(say("notes"), list(self._notes(shown)))

    def _gaps(self, shown: Recalibrated) -> Iterator[Text]:
        heads = [told(head, self.language) for head in (say("elements"), say("gap before"))]
        cells = [[str(n), told(number(gap), self.language)] for _, n, gap in shown.layers]
        table = columns(heads, cells, _COLUMN)
        names = [plain(fqn or ".") for fqn, _, _ in shown.layers]
        name = min(max(map(width_of, names)), self.width - 2 - width_of(table[0]))
        yield Text.assemble("  ", (" " * name + table[0], "bold"))
        for label, row in zip(names, table[1:], strict=True):
            yield Text.assemble("  ", padded(clipped(label, name), name), row)

    def _notes(self, shown: Recalibrated) -> Iterator[Message]:
        if shown.scores is not None:
            before, after = (number(score) for score in shown.scores)
            yield say("evaluation: {before} before, {after} after", before=before, after=after)
        if shown.skipped:
            skipped = counted(shown.skipped, "{n} batch", "{n} batches")
            yield say("{batches} left out: not finite in some layer", batches=skipped)
        if shown.uncalled:
            yield say("never called, left as they were: {layers}", layers=_names(shown.uncalled))
        yield say(
            "gap: how far evaluation was from training, in standard deviations of the normalized "
            "values"
        )
        yield from _saved(shown.saved)

    def folded(self, shown: FoldedModel) -> Iterator[Text]:
        total = len(shown.pairs) + len(shown.refused)
        text = say(
            "{folded} of {total} BatchNorm layers folded", folded=len(shown.pairs), total=total
        )
        yield from self.title(text)
        pairs = [
            say("{norm} into {layer}", norm=plain(n), layer=plain(lay)) for lay, n in shown.pairs
        ]
        yield from self.list(say("folded"), pairs)
        stays = [
            say("{norm}: {reason}", norm=plain(n), reason=reason) for n, reason in shown.refused
        ]
        yield from self.list(say("left as they were"), stays)
        proof = say(
            "greatest difference of an output {difference}; rounding allows {allowed}",
            difference=number(shown.difference),
            allowed=number(shown.allowed),
        )
        yield from self.list(say("proof"), [proof, *_saved(shown.saved)])


def _names(names: Sequence[str]) -> Message:
    return listed(plain(name) for name in names)


def _saved(file: str) -> Iterator[Message]:
    if file:
        yield say("saved in {file}", file=plain(file))
