"""The loss function's own part of a graph: what lies between a loss and the outputs of models.

It runs outside of any module and cannot be replayed, so its autograd nodes are read and hooked
before backward frees them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor

from traindx.capture.births import (
    Birth,
    Range,
    bad_gradient,
    born_in_backward,
    first_bad,
    is_number,
    num_bad,
    operation_of,
    range_of,
)
from traindx.capture.nodes import accumulates, name_of, saved

_LIMIT = 256
"""Nodes between loss and outputs beyond which they are left alone."""

_Passed = tuple[str, int, Any, Any]
"""A node's name and sequence number, the gradients that it passed on, and those that it got."""

_Forward = Callable[[Any], Tensor]

# What an operation gave, by its node, where autograd keeps what went in and not what came out.
_AGAIN: dict[str, _Forward] = {
    "LogBackward0": lambda node: node._saved_self.log(),
    "Log2Backward0": lambda node: node._saved_self.log2(),
    "Log10Backward0": lambda node: node._saved_self.log10(),
    "Log1PBackward0": lambda node: node._saved_self.log1p(),
    "PowBackward0": lambda node: torch.pow(node._saved_self, node._saved_exponent),
    "DivBackward0": lambda node: 1 / node._saved_other,
    "AcosBackward0": lambda node: node._saved_self.acos(),
    "AsinBackward0": lambda node: node._saved_self.asin(),
    "LgammaBackward0": lambda node: node._saved_self.lgamma(),
}
_KEPT = ("SqrtBackward0", "LinalgVectorNormBackward0", "NormBackward0", *_AGAIN)
_RESULTS = ("result", "output")


class LossPart:
    """The operations between a loss and the outputs of models, in the order they ran.

    Args:
        loss: What is given to backward.
        outputs: Sequence numbers of the nodes that made the models' outputs.
    """

    def __init__(self, loss: Tensor, outputs: set[int]) -> None:
        self._nodes = _between(loss, outputs)
        self._seen: list[_Passed] = []
        self._inputs: dict[int, tuple[Tensor, ...]] = {}

    def watch_backward(self) -> None:
        """Keep the gradients that pass through, until `backward_birth` is asked."""
        for node in self._nodes if len(self._nodes) < _LIMIT else ():
            name, number = name_of(node), node._sequence_nr()
            if name in _KEPT:
                self._inputs[number] = tuple(_saved(node).values())
            # A hook that held its node would keep it for good.
            node.register_hook(functools.partial(_keep, self._seen, name, number))

    def backward_birth(self) -> Birth | None:
        """The first node whose gradients stopped being finite; None if it is further back."""
        for name, number, grad_inputs, grad_outputs in self._seen:
            if (bad := bad_gradient(grad_inputs, grad_outputs)) is not None:
                ranges = tuple(range_of(it) for it in self._inputs.get(number, ()))
                return born_in_backward(name, bad, ranges, fqn="", in_loss=True)
        return None

    def forget(self) -> None:
        """Let go of the gradients, though the graph and its hooks may live on."""
        self._seen.clear()
        self._inputs.clear()

    def forward_birth(self) -> Birth | None:
        """The first operation with a result that is not finite; None if there is no operation."""
        for node in self._nodes:
            if (birth := _born(node)) is not None:
                return birth
        if not self._nodes:
            return None
        return Birth("loss", "", operation_of(name_of(self._nodes[-1])))


def _keep(seen: list[_Passed], name: str, number: int, grad_inputs: Any, grad_outputs: Any) -> None:
    seen.append((name, number, grad_inputs, grad_outputs))


def _between(loss: Tensor, outputs: set[int]) -> list[Any]:
    found: set[Any] = set()
    stack: list[Any] = [loss.grad_fn]
    while stack and len(found) < _LIMIT:
        node = stack.pop()
        if node not in found and not accumulates(node) and node._sequence_nr() not in outputs:
            found.add(node)
            stack.extend(child for child, _ in node.next_functions if child is not None)
    return sorted(found, key=lambda node: node._sequence_nr())


def _born(node: Any) -> Birth | None:
    """The birth of what is not finite in one operation, as far as its node can tell."""
    operation = operation_of(name_of(node))
    kept = _saved(node)
    inputs = [it for name, it in kept.items() if name not in _RESULTS]
    ranges = tuple(range_of(it) for it in inputs)
    given = next((it for it in inputs if num_bad(it)), None)
    if given is not None:  # by an operation that keeps nothing, or by the data
        before = [name_of(child) for child, _ in node.next_functions if child is not None]
        operation = operation_of(before[0]) if before and "target" not in kept else operation
        return _birth(operation, given, ())
    if getattr(node, "_saved_ignore_index", None) is not None and not _total_weight(node):
        return Birth("loss", "", "nll_loss_without_targets", (), (), ranges)
    made = [it for name, it in kept.items() if name in _RESULTS]
    if inputs and (again := _AGAIN.get(name_of(node))):
        made.append(again(node))
    bad = next((it for it in made if num_bad(it)), None)
    return None if bad is None else _birth(operation, bad, ranges)


def _birth(operation: str, bad: Tensor, ranges: tuple[Range, ...]) -> Birth:
    index, shape, count = first_bad(bad), tuple(bad.shape), num_bad(bad)
    return Birth("loss", "", operation, index, shape, ranges, count)


def _total_weight(node: Any) -> float:
    total = saved(node, "total_weight")
    return float(total) if total is not None and total.numel() == 1 else math.nan


def _saved(node: Any) -> dict[str, Tensor]:
    """The tensors a node keeps, by the name of the operand."""
    names = (name.removeprefix("_saved_") for name in dir(node) if name.startswith("_saved_"))
    values = {name: saved(node, name) for name in names}
    apart = ("total_weight", "weight")
    return {k: cast(Tensor, it) for k, it in values.items() if k not in apart and is_number(it)}
