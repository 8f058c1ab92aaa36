"""The same case in other widths, where a function makes it that takes one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from traindx.errors import UsageError
from traindx.messages import say

NAMES = (
    *("width", "hidden", "hidden_size", "hidden_dim", "d_model", "dim", "n_embd", "embed_dim"),
    "channels",
)
"""Arguments that are taken for a width, in this order."""
_USUAL = 64
"""The width where an argument is named that has no default."""


@dataclass(frozen=True, slots=True)
class Width:
    """The argument of a function that says how wide its model is.

    Attributes:
        function: Makes a case's parts.
        argument: The argument's name.
        base: The width that it has.
    """

    function: Callable[..., Any]
    argument: str
    base: int

    def make(self, width: int) -> Callable[[], Any]:
        """The function with another width."""
        return lambda: self.function(**{self.argument: width})


def width_of(found: object, target: str, argument: str | None) -> Width | None:
    """The width that what a target names takes; None if it takes none.

    Args:
        found: What it names.
        target: What it was asked for by.
        argument: The argument's name; None takes a usual one that has a whole number as default.

    Raises:
        UsageError: It has no such argument.
    """
    parameters = _parameters(found)
    if argument is None:
        named = (name for name in NAMES if name in parameters)
        argument = next((n for n in named if _is_width(parameters[n].default)), None)
        if argument is None:
            return None
    if argument not in parameters:
        raise UsageError(
            say(
                "`{target}` has no argument `{argument}`. `--width-argument` needs the name of the "
                "one that says how wide the model is.",
                target=target,
                argument=argument,
            )
        )
    default = parameters[argument].default
    base = int(default) if _is_width(default) else _USUAL
    return Width(cast("Callable[..., Any]", found), argument, base)


def _parameters(found: object) -> dict[str, inspect.Parameter]:
    if not callable(found):
        return {}
    try:
        return dict(inspect.signature(found).parameters)
    except (TypeError, ValueError):  # it has no signature to look at
        return {}


def _is_width(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 1
