"""`traindx norm convert`: each layer with its new name, what is refused and why, and the proof."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from rich.text import Text

from traindx.facts import Json
from traindx.messages import Message, counted, listed, say
from traindx.norm.convert.carrying import Carried
from traindx.norm.convert.converting import Conversion
from traindx.norm.convert.proof import Proof, worst
from traindx.norm.spec import NormSpec
from traindx.report.story import number
from traindx.report.text import Layout, painted
from traindx.report.untrusted import plain, told
from traindx.report.wrapping import clipped, padded, width_of, wrapped

_NAMED = 3
"""Layers that are named where many share a line."""
_LISTED = 60
"""Layers that are listed; the JSON has them all."""


def render(conversion: Conversion, source: str, *, width: int, color: bool, language: str) -> str:
    """For a person."""
    return painted(_Page(max(width, 60), language).lines(conversion, source), color=color)


def document(conversion: Conversion, source: str) -> str:
    """For a program; numbers that are not finite are strings."""
    content: dict[str, Json] = {
        "schema": 1,
        "source": {"name": source, "framework": conversion.source.name},
        "target": conversion.target.name,
        "layers": [_layer(conversion, one) for one in conversion.layers],
        "refused": [{"name": name, "reason": str(why)} for name, why in conversion.refused.items()],
        "left_out": list(conversion.left_out),
        "other_arrays": conversion.others,
        "proofs": [_proof(one) for one in conversion.proofs],
        "saved": conversion.saved or None,
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _layer(conversion: Conversion, one: Carried) -> Json:
    state = one.after
    running = state.spec.running
    return {
        "name": one.before.name,
        "new_name": state.name,
        "kind": state.spec.kind,
        "shape": list(state.shape),
        "eps": state.spec.eps,
        "momentum": running.momentum if running else None,
        "code": conversion.target.layer(state, state.channels or "C").code,
        "assumed": list(one.before.assumed),
        "notes": [str(note) for note in one.notes],
    }


def _proof(one: Proof) -> Json:
    return {
        "layer": one.layer,
        "by": one.by,
        "difference": _json(one.difference),
        "of_what_rounding_allows": _json(one.excess),
    }


def _json(value: float) -> Json:
    return value if value - value == 0 else str(value)


class _Page(Layout):
    """One conversion."""

    def lines(self, conversion: Conversion, source: str) -> Iterator[Text]:
        count = len(conversion.layers) + len(conversion.refused)
        yield from self.title(
            say(
                "{source}: {layers} from {a} to {b}, {refused} refused",
                source=plain(source),
                layers=counted(count, "{n} normalization layer", "{n} normalization layers"),
                a=conversion.source.name,
                b=conversion.target.name,
                refused=len(conversion.refused),
            ),
            "bold red" if conversion.refused else "bold",
        )
        yield from self._names(conversion)
        yield from self.list(say("refused, so nothing is written"), list(_refused(conversion)))
        yield from self._code(conversion)
        yield from self.list(say("notes"), list(_notes(conversion)))
        yield from self.list(say("proof"), list(_proofs(conversion)))

    def _names(self, conversion: Conversion) -> Iterator[Text]:
        rows = [
            (plain(one.before.name) or ".", plain(one.after.name) or ".", one.after)
            for one in conversion.layers[:_LISTED]
        ]
        if not rows:
            return
        room = (self.width - 2 - 30) // 2
        names = ([old for old, _, _ in rows], [new for _, new, _ in rows])
        widths = [min(max(map(width_of, column)), room) for column in names]
        yield Text()
        for old, new, state in rows:
            shape = " x ".join(map(str, state.shape)) or "-"
            yield Text(
                f"  {padded(clipped(old, widths[0]), widths[0])}  ->  "
                f"{padded(clipped(new, widths[1]), widths[1])}  {state.spec.kind} {shape}"
            )
        more = len(conversion.layers) - len(rows)
        if more:
            yield Text("  " + told(say("and {n} more", n=more), self.language))

    def _code(self, conversion: Conversion) -> Iterator[Text]:
        """How the target makes the layers: eps, momentum and groups are no weights, but code."""
        groups: dict[str, list[str]] = {}
        for one in conversion.layers:
            line = conversion.target.layer(one.after, "C").code
            groups.setdefault(line, []).append(one.after.name)
        if groups:
            yield Text()
            yield from self.title(say("in your program"))
        for line, names in groups.items():
            yield Text(f"  {plain(line)}", style="green")  # not wrapped: it is there to be pasted
            whom = told(say("for {layers}", layers=_few(names)), self.language)
            yield from (Text(f"    {part}") for part in wrapped(whom, self.width - 4))


def _refused(conversion: Conversion) -> Iterator[Message]:
    reasons: dict[Message, list[str]] = {}
    for name, why in conversion.refused.items():
        reasons.setdefault(why, []).append(name)
    for why, names in reasons.items():
        yield say("{layers}: {note}", layers=_few(names), note=why)


def _notes(conversion: Conversion) -> Iterator[Message]:
    assumed: dict[str, list[str]] = {}
    notes: dict[Message, list[str]] = {}
    for one in conversion.layers:
        for option in one.before.assumed:
            value = _option(one.before.spec, option)
            key = f"{option} {'none' if value is None else f'{value:g}'}"
            assumed.setdefault(key, []).append(one.before.name)
        for note in one.notes:
            notes.setdefault(note, []).append(one.before.name)
    for key, names in assumed.items():
        yield say(
            "{option} is the default of {framework}, since the file does not tell: {layers}; if it "
            "is another, name it with `--layer`",
            option=key,
            framework=conversion.source.name,
            layers=_few(names),
        )
    for note, names in notes.items():
        yield say("{layers}: {note}", layers=_few(names), note=note)
    if conversion.left_out:
        yield say("left out: {layers}", layers=_few(conversion.left_out))
    if conversion.others:
        yield say("{n} arrays of other layers stay behind", n=conversion.others)


def _option(spec: NormSpec, name: str) -> float | None:
    """The value of an option that the file does not tell."""
    if name == "eps":
        return spec.eps
    if name == "momentum":
        return spec.running.momentum if spec.running else None
    return spec.groups.count if spec.groups else None


def _proofs(conversion: Conversion) -> Iterator[Message]:
    for by in dict.fromkeys(one.by for one in conversion.proofs):
        own = [one for one in conversion.proofs if one.by == by]
        found = worst(own, lambda _: True)
        assert found is not None
        yield say(
            "{by}, {layers}: greatest difference {difference}, {share} of what rounding allows",
            by=_BY.get(by, say("by {frameworks} themselves, in float32", frameworks=by)),
            layers=counted(len(own), "{n} layer", "{n} layers"),
            difference=number(max(one.difference for one in own)),
            share=number(found.excess),
        )
    yield from conversion.unasked
    if conversion.saved:
        yield say("saved in {file}", file=plain(conversion.saved))


_BY = {
    "reference": say("by our formulas in float64, from the file as it was written"),
    "training": say("a training step of both, by our formulas"),
}


def _few(names: Sequence[str]) -> Message:
    every = [plain(name) or "." for name in names]
    if len(every) <= _NAMED:
        return listed(every)
    return say("{names} and {n} more", names=listed(every[:_NAMED]), n=len(every) - _NAMED)
