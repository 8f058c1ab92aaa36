"""Sentences for people: an English template with named values, so that it can be translated.

`say("the loss is {loss:.3g}", loss=loss)` is the English sentence itself, a `str` that remembers
how it was made. What is stored is the English text; `traindx.languages` finds its template again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, reduce
from types import MappingProxyType

_NOTHING: Mapping[str, object] = MappingProxyType({})


class Message(str):
    """An English sentence that remembers its template and its values.

    `Message(text)` is a sentence that was stored: its template is found when it is translated.
    """

    __slots__ = ("template", "values")

    template: str
    values: Mapping[str, object]

    def __new__(
        cls, text: str, template: str = "", values: Mapping[str, object] = _NOTHING
    ) -> Message:
        """The sentence `text`, which is `template` with `values` in their places."""
        message = super().__new__(cls, text)
        message.template = template
        message.values = values
        return message

    def __reduce__(self) -> tuple[type[Message], tuple[str, str, dict[str, object]]]:
        return Message, (str(self), self.template, dict(self.values))


def say(template: str, /, **values: object) -> Message:
    """The sentence of a template: `say("after {steps} steps", steps=3)`.

    The template must be a literal, which is how the tests find it and ask for its translation. A
    value that is a message itself is translated with it; any other is shown as it is.
    """
    return Message(template.format_map(values), template, values) if values else _plain(template)


@cache
def _plain(template: str) -> Message:
    """A sentence without values: it is always the same, and rules say many that nobody reads."""
    return Message(template.format_map(_NOTHING), template)


def counted(number: int, one: str, many: str) -> Message:
    """A number with its noun: `counted(3, "{n} step", "{n} steps")`; both must be literals."""
    return say(one if number == 1 else many, n=number)


def listed(parts: Iterable[str]) -> Message:
    """Names or short phrases in a row, by commas; empty if there are none."""
    return _joined("{a}, {b}", parts)


def in_turn(parts: Iterable[str]) -> Message:
    """Clauses one after another, by semicolons; empty if there are none."""
    return _joined("{a}; {b}", parts)


def _joined(pair: str, parts: Iterable[str]) -> Message:
    some = [part if isinstance(part, Message) else say("{text}", text=part) for part in parts]
    return reduce(lambda a, b: say(pair, a=a, b=b), some) if some else Message("")
