"""Source of one question in a framework's own words, for a program that stands alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traindx.norm.conformance.target import Call


def keywords(options: Mapping[str, Any]) -> str:
    """Options as they stand in a call, each after a comma."""
    return "".join(f", {name}={value!r}" for name, value in options.items())


def spoken(
    call: Call,
    aspect: str,
    *,
    imports: str,
    x: str,
    build: str,
    state: Mapping[str, str],
    forward: str,
    found: Mapping[str, str],
    backward: str = "",
) -> str:
    """The steps of one question, ending with `got`.

    Every text may use the NumPy arrays `x`, `weight`, `bias`, `running_mean`, `running_var`, `dy`
    and `mask`, as far as the question gives them.

    Args:
        call: The question.
        aspect: What is looked at.
        imports: The framework's imports.
        x: The framework's array of `x`.
        build: Makes `layer`.
        state: Sets what the call may give: `weight`, `bias`, `running`.
        forward: Makes `y` from `x`.
        found: Each aspect as a NumPy array.
        backward: Makes `y` and the gradients, in place of `forward`.
    """
    steps = [
        imports,
        f"x = {x}",
        build.strip(),
        state["weight"] if call.weight is not None else "",
        state["bias"] if call.bias is not None else "",
        state["running"] if call.running is not None else "",
        backward if aspect.startswith("grad") else forward,
        f"got = {found[aspect]}",
    ]
    return "\n".join(step for step in steps if step)
