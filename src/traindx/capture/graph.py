"""Reading the autograd graph behind a loss: what was compared, and the paths to the parameters.

The graph is walked before backward frees it, on the first steps only, and nothing of it is kept.
It sees functional activations and losses that no module hook can.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from traindx.capture.nodes import accumulates, name_of, saved
from traindx.capture.transfer import Lists, Numbers, Unread
from traindx.capture.ways import Step, Ways
from traindx.facts import TensorFacts
from traindx.records import Item
from traindx.stats import is_freed

_LIMIT = 50_000
_SIGMOIDS = {"SigmoidBackward0", "LogSigmoidBackward0"}
_NORMS = ("BatchNorm", "LayerNorm", "GroupNorm", "RmsNorm", "RMSNorm", "InstanceNorm")
_LOSSES = {
    "NllLossBackward0",
    "NllLoss2DBackward0",
    "MseLossBackward0",
    "BinaryCrossEntropyBackward0",
    "BinaryCrossEntropyWithLogitsBackward0",
    "SmoothL1LossBackward0",
    "HuberLossBackward0",
    "KlDivBackward0",
    "SoftMarginLossBackward0",
    "MultilabelMarginLossBackward0",
}
# Operations that never lengthen a gradient, by the name before `Backward`.
_CONTRACTIVE = {
    "Abs", "Add", "Alias", "BinaryCrossEntropyWithLogits", "Cat", "Clamp", "ClampMax", "ClampMin",
    "Clone", "Copy", "Elu", "Hardtanh", "LeakyRelu", "LogSoftmax", "Mean", "Neg", "NllLoss",
    "NllLoss2D", "Permute", "Relu", "Reshape", "ReshapeAlias", "Select", "Slice", "Softplus",
    "Split", "Squeeze", "Stack", "Sub", "T", "Tanh", "ToCopy", "Transpose", "Unbind", "UnsafeView",
    "Unsqueeze", "View",
}  # fmt: skip
_POOLS = ("MaxPool", "AvgPool", "AdaptiveAvg", "AdaptiveMax")
# What may stand between a weight and its use: a transpose, or a cast (of autocast).
_RESHAPED = ("TBackward0", "TransposeBackward0", "PermuteBackward0", "ToCopyBackward0")
# What rearranges a tensor and leaves its elements as they are.
_FLATTENED = ("ViewBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0")


@dataclass(frozen=True, slots=True)
class Comparison:
    """The loss operation found behind a loss, and its operands."""

    loss: str
    prediction: Operand | None
    target: Operand | None

    def unread(
        self, note: Callable[[TensorFacts | None, TensorFacts | None], list[Item]]
    ) -> Unread:
        """What is to be read of the operands.

        Args:
            note: Makes items of the two, prediction and target, once they are known.
        """
        operands = (self.prediction, self.target)
        sizes = [0 if it is None else len(it.unread) for it in operands]
        known = [None if it is None else it.known for it in operands]

        def items(numbers: Numbers, _lists: Lists) -> list[Item]:
            read = [numbers[: sizes[0]], numbers[sizes[0] :]]
            return note(*(it and _completed(it, own) for it, own in zip(known, read, strict=True)))

        return Unread([it for operand in operands if operand for it in operand.unread], [], items)


class Operand(NamedTuple):
    """What a loss compares, as far as it is known without reading it, and what is to be read."""

    known: TensorFacts
    unread: tuple[Tensor, ...] = ()


class Graph:
    """The autograd graph behind one scalar.

    Attributes:
        operation: Name of the operation that made the scalar.
        leaves: The tensors whose gradient it accumulates.
    """

    def __init__(self, loss: Tensor) -> None:
        root = cast(Any, loss.grad_fn)
        self.operation: str = name_of(root)
        self._nodes = _from_loss_to_leaves(root)
        self.leaves: list[Tensor] = [node.variable for node in self._nodes if accumulates(node)]

    def ways(self) -> Ways:
        """What lies on the ways from the loss back to each parameter."""
        places = {node: i for i, node in enumerate(self._nodes)}
        weights: list[Tensor] = []
        steps = [_step(node, places, weights) for node in self._nodes]
        complete = len(steps) <= _LIMIT and not any(map(is_freed, weights))
        return Ways(steps, weights, complete=complete)

    def comparison(self, outputs: dict[int, Tensor]) -> Comparison | None:
        """The first known loss operation, with what it compared.

        Args:
            outputs: Outputs of models by the number of the node that made them, for the values of
                a prediction that autograd did not save.
        """
        node = next((node for node in self._nodes[:64] if name_of(node) in _LOSSES), None)
        if node is None:
            return None
        target = saved(node, "target")
        return Comparison(
            name_of(node),
            _prediction(node, outputs),
            None if target is None else _operand(_unexpanded(target), ""),
        )


def _step(node: Any, places: dict[Any, int], weights: list[Tensor]) -> Step:
    """One operation on the ways; the weight it multiplies by is added to `weights`."""
    name = name_of(node)
    sigmoid, leaf, weight = name in _SIGMOIDS, accumulates(node), _weight_of(node)
    onward = [
        (places[child], weight is None or _leaf(child) is not None)
        for child in _children(node)
        if child in places
    ]
    if weight is not None:
        weights.append(weight)
    return Step(
        sigmoid,
        any(kind in name for kind in _NORMS),
        sigmoid or leaf or _has_known_gain(node),
        None if weight is None else len(weights) - 1,
        tuple(onward),
        id(node.variable) if leaf else None,
    )


def _has_known_gain(node: Any) -> bool:
    """Whether an operation passes on no more gradient than it gets, times its weight's norm."""
    name = name_of(node)
    if _is_linear(name):
        return _weight_of(node) is not None  # of two activations no norm is known
    kind = name.partition("Backward")[0]
    scaled = getattr(node, "_saved_alpha", 1) != 1  # of `torch.add(a, b, alpha=2)`
    return (kind in _CONTRACTIVE and not scaled) or kind.startswith(_POOLS)


def _children(node: Any) -> Iterator[Any]:
    return (child for child, _ in node.next_functions if child is not None)


def _from_loss_to_leaves(root: Any) -> list[Any]:
    """Every node, each before the nodes its gradient flows into (depth-first, reversed)."""
    order: list[Any] = []
    seen = {root}
    stack: list[tuple[Any, Iterator[Any]]] = [(root, _children(root))]
    while stack:
        node, children = stack[-1]
        child = next((child for child in children if child not in seen), None)
        if child is None or len(seen) > _LIMIT:
            order.append(node)
            stack.pop()
        else:
            seen.add(child)
            stack.append((child, _children(child)))
    return order[::-1]


def _is_linear(name: str) -> bool:
    return name in ("AddmmBackward0", "MmBackward0", "ConvolutionBackward0", "LinearBackward0")


def _leaf(node: Any) -> Tensor | None:
    """The parameter behind a node, directly or through a transpose or a cast."""
    for _ in range(3):
        if accumulates(node):
            return node.variable
        children = list(_children(node))
        if len(children) != 1 or name_of(node) not in _RESHAPED:
            return None
        node = children[0]
    return None


def _weight_of(node: Any) -> Tensor | None:
    """The weight matrix that a linear operation multiplies its input by."""
    if not _is_linear(name_of(node)):
        return None
    leaves = (_leaf(child) for child in _children(node))
    return next((leaf for leaf in leaves if leaf is not None and leaf.dim() >= 2), None)


def _prediction(loss: Any, outputs: dict[int, Tensor]) -> Operand | None:
    """What was compared, before what the loss functions apply themselves.

    That is cross-entropy's log-softmax, and the expansion to a common shape.
    """
    node = next(_children(loss), None)
    if node is not None and name_of(node) == "ExpandBackward0":
        node = next(_children(node), None)
    if node is None:
        return None
    if name_of(loss) == "NllLoss2DBackward0" and name_of(node) in _FLATTENED:
        node = next(_children(node), node)  # sequences are given a second spatial axis
    if name_of(loss).startswith("NllLoss") and name_of(node) == "LogSoftmaxBackward0":
        node = next(_children(node), node)
    if (probabilities := _softmax_seen_through(node)) is not None:
        return _operand(probabilities, "SoftmaxBackward0")
    made = outputs.get(node._sequence_nr())
    value = made if made is not None else saved(node, "result")
    if value is None and not name_of(loss).startswith("NllLoss"):
        value = saved(loss, "self")
    if value is None:
        return _shape_only(node)
    return _operand(_unexpanded(value), name_of(node))


def _softmax_seen_through(node: Any) -> Tensor | None:
    """The result of a softmax as what follows it rearranges it; None if there is no softmax.

    Tokens are flattened, or classes moved to axis 1, before a loss takes them.
    """
    views: list[Any] = []
    while name_of(node) != "SoftmaxBackward0":
        if len(views) > 3 or name_of(node) not in (*_FLATTENED, *_RESHAPED, "CloneBackward0"):
            return None
        views.append(node)
        node = next(_children(node), None)
        if node is None:
            return None
    value = saved(node, "result")
    for view in reversed(views):
        value = None if value is None else _rearranged(value, view)
    return value


def _rearranged(value: Tensor, view: Any) -> Tensor:
    """What an operation of `_FLATTENED` or `_RESHAPED` makes of a value."""
    match name_of(view):
        case "TBackward0":
            return value.t()
        case "TransposeBackward0":
            return value.transpose(_axis(view._saved_dim0), _axis(view._saved_dim1))
        case "PermuteBackward0":
            return value.permute(*map(_axis, view._saved_dims))
        case name if name in _FLATTENED:
            return value.reshape(tuple(view._input_metadata[0].shape))
        case _:  # a copy or a cast
            return value


def _axis(saved: int) -> int:
    """An axis as it was given: autograd saves a negative one as an unsigned number."""
    return saved - 2**64 if saved >= 2**63 else saved


def _unexpanded(value: Tensor) -> Tensor:
    """A tensor as it was before it was expanded to the shape of what it is compared with."""
    for dim in reversed(range(value.dim())):
        if value.stride(dim) == 0 and value.shape[dim] > 1:
            value = value.narrow(dim, 0, 1) if dim else value[0]
    return value


def _shape_only(node: Any) -> Operand | None:
    metadata = getattr(node, "_input_metadata", None)
    if not metadata:
        return None
    shape, dtype = tuple(metadata[0].shape), str(metadata[0].dtype).removeprefix("torch.")
    return Operand(TensorFacts(shape, dtype, name_of(node), math.nan, math.nan, False, False))


def _operand(value: Tensor, operation: str) -> Operand:
    """Its shape, and what will tell its range and form."""
    value = value.detach()
    dtype, integers = str(value.dtype).removeprefix("torch."), not value.is_floating_point()
    shape = tuple(value.shape)
    known = TensorFacts(shape, dtype, operation, math.nan, math.nan, integers, False)
    if not value.numel() or value.is_complex() or is_freed(value):
        return Operand(known)
    wide = value.float() if value.device.type == "mps" else value.double()
    whole = wide.eq(wide.round()).all()
    off = (wide.sum(1) - 1).abs().max() if value.dim() >= 2 else wide.new_full((), math.inf)
    return Operand(known, (*torch.aminmax(wide), whole, off))


def _completed(known: TensorFacts, numbers: Sequence[float]) -> TensorFacts:
    """Facts with what was read: least, greatest, whether all is whole, how far rows sum to 1."""
    if not numbers:
        return known
    low, high, whole, off = numbers
    sums = low >= 0 and off < 1e-3
    return replace(
        known, min=low, max=high, integers=known.integers or bool(whole), rows_sum_to_one=sums
    )
