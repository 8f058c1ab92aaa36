"""Backward passes written by hand: which there are, and which are meant to be no derivative."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import torch
from torch import Tensor

from traindx.preflight.structures import tensors

_SLIGHTLY = 1 + 1e-9
"""What an argument is multiplied by to see whether a result follows it at all, in float64."""

Function = Any
"""A subclass of `torch.autograd.Function`."""


def written_by_hand(loss: Tensor) -> list[Function]:
    """The autograd functions of the user's in the graph of a loss."""
    stack: list[Any] = [loss.grad_fn]
    seen: set[Any] = {None, *stack}
    found: dict[Function, None] = {}
    while stack:
        node = stack.pop()
        if isinstance(node, cast(Any, torch).autograd.function.BackwardCFunction):
            found[cast(Any, type(node))._forward_cls] = None
        new = [child for child, _ in node.next_functions if child not in seen]
        seen.update(new)
        stack.extend(new)
    return [*found]


def replaced(functions: Iterable[Function], compute: Callable[[], object]) -> list[Function]:
    """Those whose backward can only be meant to be no derivative.

    The identity has 1 and a step has 0 for a derivative, which autograd knows: who writes a
    backward for one of them wants another (reversed gradients, straight-through estimators,
    surrogates of spikes).

    Args:
        functions: The functions asked about.
        compute: Calls them, on tensors in float64.
    """
    found: list[Function] = []
    with ExitStack() as stack:
        for function in functions:
            stack.enter_context(_watched(function, found))
        compute()
    return found


@contextmanager
def _watched(function: Function, found: list[Function]) -> Generator[None]:
    """Inside, a function is looked at each time its forward is called."""
    original, own = function.forward, cast("dict[str, Any]", vars(function)).get("forward")

    def forward(*args: Any, **kwargs: Any) -> Any:
        def call(*given: Any) -> list[Tensor]:
            with cast(Any, torch).random.fork_rng(devices=()):
                return [made.clone() for made in tensors(original(*given, **kwargs))]

        if function not in found and _is_replaced(call, args):
            found.append(function)
        return original(*args, **kwargs)

    function.forward = staticmethod(forward)
    try:
        yield
    finally:
        if own is None:
            del function.forward
        else:
            function.forward = own


def _is_replaced(call: Callable[..., list[Tensor]], args: tuple[Any, ...]) -> bool:
    """Whether the results are an argument itself, or do not follow it where it moves a little."""
    copies = [it.clone() if isinstance(it, Tensor) else it for it in args]
    made = call(*copies)
    for i, it in enumerate(args):
        if isinstance(it, Tensor) and it.is_floating_point():
            if any(result.shape == it.shape and result.equal(it) for result in made):
                return True
            moved = call(*args[:i], it * _SLIGHTLY, *args[i + 1 :])
            if all(a.equal(b) for a, b in zip(made, moved, strict=True)):
                return True
    return False
