"""What the user says of layers: their kinds, their new names, and which stay behind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from traindx.errors import UsageError
from traindx.messages import say
from traindx.norm import numbers
from traindx.norm.convert.frameworks.framework import Hint


def hint(text: str) -> Hint:
    """`PATTERN=PRESET[,OPTION=VALUE…]`, such as `ln*=torch.LayerNorm,eps=1e-6`.

    Raises:
        UsageError: It is none, or the preset does not take its options.
    """
    pattern, equals, rest = text.partition("=")
    name, *options = rest.split(",")
    if not (equals and pattern and name):
        raise UsageError(
            say(
                "A layer is named as `PATTERN=PRESET,OPTION=VALUE`, such as "
                "`ln*=torch.LayerNorm,eps=1e-6`; got {text}.",
                text=repr(text),
            )
        )
    given = tuple(option.partition("=")[0] for option in options)
    return Hint(pattern, numbers.spec(name, options), given)


def renamed(name: str, renames: Sequence[tuple[str, str]]) -> str:
    """A name after the first rename that it fits; what `*` stood for goes where `*` stands."""
    for old, new in renames:
        stars = "(.*)".join(re.escape(piece) for piece in old.split("*"))
        match = re.fullmatch(stars, name)
        if match:
            first, *rest = new.split("*")
            held = match.groups()[: len(rest)]
            return first + "".join(part + piece for part, piece in zip(held, rest, strict=True))
    return name


def rename(text: str) -> tuple[str, str]:
    """`OLD=NEW`, in both of which a `*` stands for anything.

    Raises:
        UsageError: It is none, or the new name has more stars than the old.
    """
    old, equals, new = text.partition("=")
    if not (equals and old and new) or new.count("*") > old.count("*"):
        raise UsageError(
            say(
                "A name is changed as `OLD=NEW`, such as `encoder.*.bn=block.*.norm`, with no more "
                "`*` in the new one; got {text}.",
                text=repr(text),
            )
        )
    return old, new


def is_left_out(name: str, patterns: Sequence[str]) -> bool:
    """Whether the user leaves a layer behind."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)
