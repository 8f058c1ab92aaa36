"""The languages that traindx speaks besides English: a folder each, with the twin of every message.

A folder's files hold `MESSAGES`, the translation by English template; both name the same values.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from itertools import pairwise
from string import Formatter

from traindx.messages import Message

LANGUAGES = {"en": "English", "zh-Hant": "繁體中文"}
"""What `--lang` takes."""

_TRADITIONAL = re.compile(r"zh[_-](TW|HK|MO|Hant)\b", re.IGNORECASE)
_DEEPEST = 3
"""How deep messages within stored messages are looked for."""
_LEAST_TEXT = 12
"""Characters of its own that a template needs to be recognized in a stored sentence."""


def chosen(environ: Mapping[str, str]) -> str:
    """The language that the environment asks for (`LC_ALL`, `LC_MESSAGES`, `LANG`)."""
    asked = next((environ[k] for k in ("LC_ALL", "LC_MESSAGES", "LANG") if environ.get(k)), "")
    return "zh-Hant" if _TRADITIONAL.match(asked) else "en"


def named(name: str) -> str | None:
    """The language that a person calls so: `en`, `zh-Hant`, `zh_TW`; None if there is none."""
    exact = {language.casefold(): language for language in LANGUAGES}
    found = exact.get(name.casefold().replace("_", "-"))
    return found or ("zh-Hant" if _TRADITIONAL.match(name) else None)


def translate(text: str, language: str) -> str:
    """A message in another language; as it is where the language has no twin of it.

    Text that is no message may be one that was stored, and is looked up among the templates.
    """
    if language == "en" or not text:
        return text
    twin = messages(language).get(text.template) if isinstance(text, Message) else None
    if twin is None or not isinstance(text, Message):
        return _from_text(text, language)
    values = {
        name: translate(value, language) if isinstance(value, Message) else value
        for name, value in text.values.items()
    }
    return twin.format_map(values)


@cache
def messages(language: str) -> Mapping[str, str]:
    """Every translation of a language by its English template."""
    folder = import_module(f"{__name__}.{language.replace('-', '_').lower()}")
    files = pkgutil.iter_modules(folder.__path__, f"{folder.__name__}.")
    return {k: v for file in files for k, v in import_module(file.name).MESSAGES.items()}


def _from_text(text: str, language: str, depth: int = 0) -> str:
    """Of a sentence that was stored, by the template that it fits.

    A value of one word is taken over as it stands: a name must not be mistaken for a word. One of
    several may be a message itself.
    """
    if (twin := messages(language).get(text)) and "{" not in text:
        return twin
    for pieces, twin in _stored(language):
        if (values := _values(text, pieces)) is not None:
            for name, value in values.items():
                if " " in value.strip() and depth < _DEEPEST:
                    values[name] = _from_text(value, language, depth + 1)
            return Formatter().vformat(_without_formats(twin), (), values)
    return str(text)


Piece = tuple[str, str | None]
"""Text of a template's own, and the name of the value that follows it, None at the end."""


@cache
def _stored(language: str) -> list[tuple[list[Piece], str]]:
    """Templates with values in pieces, those with the most text of their own first."""
    found = [(_pieces(template), twin) for template, twin in messages(language).items()]
    found = [(pieces, twin) for pieces, twin in found if _own(pieces) >= _LEAST_TEXT]
    return sorted(found, key=lambda pair: -_own(pair[0]))


def _pieces(template: str) -> list[Piece]:
    pieces: list[Piece] = []
    own = ""
    for literal, name, _, _ in Formatter().parse(template):
        own += literal  # an escaped brace parts the text, but no value follows it
        if name is not None:
            pieces.append((own, name))
            own = ""
    return [*pieces, (own, None)]


def _own(pieces: list[Piece]) -> int:
    return sum(len(literal) for literal, _ in pieces)


def _values(text: str, pieces: list[Piece]) -> dict[str, str] | None:
    """What stands in the places of the values, None if the text is not of this template.

    A stored text may come from anywhere: every piece is looked for once, without going back.
    """
    values: dict[str, str] = {}
    if not text.startswith(pieces[0][0]):
        return None
    start = len(pieces[0][0])
    for (_, name), (literal, after) in pairwise(pieces):
        last = after is None
        end = len(text) - len(literal) if last else text.find(literal, start)
        if end < start or (last and not text.endswith(literal)):
            return None
        assert name is not None  # only the last piece has no value after it
        if values.setdefault(name, text[start:end]) != text[start:end]:
            return None
        start = end + len(literal)
    return values if start == len(text) else None


def _without_formats(template: str) -> str:
    """Values that come from text are text, and take no number formats."""
    return "".join(
        literal.replace("{", "{{").replace("}", "}}") + (f"{{{name}}}" if name is not None else "")
        for literal, name, _, _ in Formatter().parse(template)
    )
