"""`traindx norm explain`: the differences of two layers as text, Markdown or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

from rich.text import Text

from traindx.facts import Json
from traindx.messages import Message, counted, say
from traindx.norm.explain.difference import Difference, Reach
from traindx.report.text import Layout, painted
from traindx.report.untrusted import plain, told
from traindx.report.wrapping import wrapped

_DEEP = 4

_TITLES = {
    Reach.OUTPUT: say("the output is another"),
    Reach.LAYOUT: say("input or weights are laid out otherwise"),
    Reach.TRAINING: say("evaluation is the same, training is not"),
    Reach.EDGE: say("small, empty and masked batches are treated otherwise"),
    Reach.ROUNDING: say("the same but for rounding"),
}


def render(
    names: tuple[str, str],
    found: Sequence[Difference],
    *,
    width: int = 88,
    color: bool = False,
    language: str = "en",
) -> str:
    """For the terminal, under a title for each reach."""
    return painted(_Page(max(width, 60), language).lines(names, found), color=color)


def markdown(names: tuple[str, str], found: Sequence[Difference], *, language: str = "en") -> str:
    """A table of answers, and what each difference does beneath."""
    parts = [f"### {told(_headline(names, found), language)}"]
    if found:
        answer = told(say("answer"), language)
        parts += [
            "",
            f"| {answer} | {_cell(names[0])} | {_cell(names[1])} |",
            "| --- | --- | --- |",
        ]
    for one in found:
        parts.append(f"| `{one.field}` | {_cell(one.values[0])} | {_cell(one.values[1])} |")
    for reach, group in _by_reach(found):
        parts += ["", f"**{told(_TITLES[reach], language)}**", ""]
        for one in group:
            parts.append(f"- `{one.field}`: {_cell(told(one.said.effect, language))}")
            parts += [f"  - {_cell(told(line, language))}" for line in one.said.numbers]
    return "\n".join(parts)


def document(names: tuple[str, str], found: Sequence[Difference], **_: object) -> str:
    """Everything for a program."""
    content: dict[str, Json] = {
        "schema": 1,
        "names": list(names),
        "differences": [
            {
                "field": one.field,
                "reach": one.reach.value,
                "values": list(one.values),
                "effect": str(one.said.effect),
                "numbers": [str(line) for line in one.said.numbers],
                "data": dict(one.said.data),
            }
            for one in found
        ],
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


FORMATS: dict[str, Callable[..., str]] = {
    "text": render,
    "markdown": markdown,
    "json": document,
}


class _Page(Layout):
    """Both layers."""

    def lines(self, names: tuple[str, str], found: Sequence[Difference]) -> Iterator[Text]:
        yield from self.title(_headline(names, found))
        for reach, group in _by_reach(found):
            yield Text()
            yield from self.title(_TITLES[reach])
            for one in group:
                yield from self.entry(
                    say("{field}: {a} | {b}", field=one.field, a=one.values[0], b=one.values[1])
                )
                for text in (one.said.effect, *one.said.numbers):
                    yield from self._beneath(text)

    def _beneath(self, text: Message) -> Iterator[Text]:
        for line in wrapped(told(text, self.language), self.width - _DEEP):
            yield Text(" " * _DEEP + line)


def _headline(names: tuple[str, str], found: Sequence[Difference]) -> Message:
    differences = counted(len(found), "{n} difference", "{n} differences")
    return say(
        "from {a} to {b}: {differences}",
        a=plain(names[0]),
        b=plain(names[1]),
        differences=differences,
    )


def _by_reach(found: Sequence[Difference]) -> Iterator[tuple[Reach, list[Difference]]]:
    for reach in Reach:
        group = [one for one in found if one.reach is reach]
        if group:
            yield reach, group


def _cell(text: str) -> str:
    """As Markdown shows it: no column ends in it, and nothing of it is markup."""
    shown = plain(text).replace("\\", "\\\\").replace("|", "\\|")
    return shown.replace("<", "&lt;").replace("*", "\\*")
