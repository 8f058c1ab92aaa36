"""In which language the command line speaks: `--lang`, else the settings, else the environment."""

from __future__ import annotations

import os
from contextvars import ContextVar
from typing import Annotated

import typer

from traindx.errors import UsageError
from traindx.languages import LANGUAGES, chosen, named
from traindx.messages import listed, say

_asked: ContextVar[str | None] = ContextVar("asked", default=None)
_preferred: ContextVar[str | None] = ContextVar("preferred", default=None)


def _ask(name: str | None) -> str | None:
    if name is not None:
        language = named(name)
        if language is None:
            raise UsageError(
                say(
                    "There is no language `{name}`; there are {languages}.",
                    name=name,
                    languages=listed(f"`{known}`" for known in LANGUAGES),
                )
            )
        _asked.set(language)
    return name


Lang = Annotated[
    str | None,
    typer.Option(
        "--lang",
        metavar="LANG",
        callback=_ask,
        is_eager=True,
        help="Speak `en` or `zh-Hant`; by default as the settings or the environment say.",
    ),
]
"""The option, on every command that says much."""


def forget() -> None:
    """Begin anew: a process may run more than one command."""
    _asked.set(None)
    _preferred.set(None)


def prefer(language: str | None) -> None:
    """Take the language of the settings, which `--lang` overrules."""
    _preferred.set(language)


def spoken() -> str:
    """The language to speak."""
    return _asked.get() or _preferred.get() or chosen(os.environ)
