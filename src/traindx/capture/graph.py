"""Reading the autograd graph behind a loss: what was compared, and the paths to the parameters.

The graph is walked before backward frees it, on the first steps only, and nothing of it is kept.
It sees functional activations and losses that no module hook can.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from traindx.capture.nodes import name_of, saved
from traindx.facts import PathFacts, TensorFacts

_LIMIT = 50_000
_QUARTER = math.log10(0.25)
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
    prediction: TensorFacts | None
    target: TensorFacts | None


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
        self.leaves: list[Tensor] = [node.variable for node in self._nodes if _is_leaf(node)]

    def paths(self) -> dict[int, PathFacts]:
        """What lies on the ways from the loss back to each parameter, by the parameter's id.

        Spectral norms are read (one synchronization) only where every way to some parameter passes
        4 sigmoids.
        """
        paths = self._joined(lambda _weight: 0.0)
        if any(path.sigmoids >= 4 and path.log10_bound is not None for path in paths.values()):
            paths = self._joined(_log10_spectral_norm)
        return paths

    def _joined(self, log10_norm: Callable[[Tensor], float]) -> dict[int, PathFacts]:
        """All paths joined node by node, each after everything its gradient comes from."""
        complete = len(self._nodes) <= _LIMIT
        joined: dict[Any, _Paths] = {self._nodes[0]: _Paths(bounded=complete)}
        for node in self._nodes:
            here = joined[node] = joined[node].through(node)
            weight = _weight_of(node)
            onward = here if weight is None else here.scaled(log10_norm(weight))
            for child in _children(node):
                into_weight = weight is None or _leaf(child) is not None
                path = here if into_weight else onward
                joined[child] = joined[child].beside(path) if child in joined else path
        return {id(node.variable): joined[node].facts() for node in self._nodes if _is_leaf(node)}

    def comparison(self, outputs: list[Tensor]) -> Comparison | None:
        """The first known loss operation, with what it compared.

        Args:
            outputs: Outputs of models, for the values of a prediction that autograd did not save.
        """
        node = next((node for node in self._nodes[:64] if name_of(node) in _LOSSES), None)
        if node is None:
            return None
        target = saved(node, "target")
        return Comparison(
            name_of(node),
            _prediction(node, outputs),
            None if target is None else _tensor_facts(_unexpanded(target), ""),
        )


@dataclass(frozen=True, slots=True)
class _Paths:
    """All paths from the loss to one node of the graph.

    Attributes:
        sigmoids: Sigmoids on the path with the fewest.
        norms: Normalizations on that path.
        log10: Log10 of the gradient's bound, the sum over the paths of the product of their gains.
        bounded: Whether the gain of every operation on every path is known.
    """

    sigmoids: int = 0
    norms: int = 0
    log10: float = 0.0
    bounded: bool = True

    def through(self, node: Any) -> _Paths:
        """The same paths past the operation at their end."""
        name = name_of(node)
        sigmoid = name in _SIGMOIDS
        return _Paths(
            self.sigmoids + sigmoid,
            self.norms + any(kind in name for kind in _NORMS),
            self.log10 + (_QUARTER if sigmoid else 0.0),
            self.bounded and (sigmoid or _is_leaf(node) or _has_known_gain(node)),
        )

    def scaled(self, log10: float) -> _Paths:
        return _Paths(self.sigmoids, self.norms, self.log10 + log10, self.bounded)

    def beside(self, other: _Paths) -> _Paths:
        """These paths and others to the same node, where their gradients add up."""
        easier = min(self, other, key=lambda paths: (paths.sigmoids, paths.norms))
        log10 = _log10_of_sum(self.log10, other.log10)
        return _Paths(easier.sigmoids, easier.norms, log10, self.bounded and other.bounded)

    def facts(self) -> PathFacts:
        return PathFacts(self.sigmoids, self.norms, self.log10 if self.bounded else None)


def _log10_of_sum(a: float, b: float) -> float:
    """Log10 of 10^a + 10^b."""
    low, high = min(a, b), max(a, b)
    return high if low == -math.inf else high + math.log10(1 + 10 ** (low - high))


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


def _is_leaf(node: Any) -> bool:
    return name_of(node).endswith("AccumulateGrad")


def _leaf(node: Any) -> Tensor | None:
    """The parameter behind a node, directly or through a transpose or a cast."""
    for _ in range(3):
        if _is_leaf(node):
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


def _log10_spectral_norm(weight: Tensor) -> float:
    """Log10 of the largest singular value by power iteration from a fixed start.

    A convolution's is bounded by that of its reshaped kernel times the root of its window.
    """
    matrix = weight.detach().flatten(1).float()
    vector = torch.cos(torch.arange(matrix.shape[1], device=matrix.device, dtype=matrix.dtype))
    for _ in range(30):
        vector = F.normalize(torch.mv(matrix.T, torch.mv(matrix, vector)), dim=0)
    window = math.prod(weight.shape[2:])
    norm = float(torch.mv(matrix, vector).square().sum().sqrt()) * math.sqrt(window)
    return math.log10(norm) if norm > 0 else -math.inf


def _prediction(loss: Any, outputs: list[Tensor]) -> TensorFacts | None:
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
        return _tensor_facts(probabilities, "SoftmaxBackward0")
    made = next((output for output in outputs if output.grad_fn is node), None)
    value = made if made is not None else saved(node, "result")
    if value is None and not name_of(loss).startswith("NllLoss"):
        value = saved(loss, "self")
    if value is None:
        return _shape_facts(node)
    return _tensor_facts(_unexpanded(value), name_of(node))


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


def _shape_facts(node: Any) -> TensorFacts | None:
    metadata = getattr(node, "_input_metadata", None)
    if not metadata:
        return None
    shape, dtype = tuple(metadata[0].shape), str(metadata[0].dtype).removeprefix("torch.")
    return TensorFacts(shape, dtype, name_of(node), math.nan, math.nan, False, False)


def _tensor_facts(value: Tensor, operation: str) -> TensorFacts:
    """Its shape, range and form: reads the device, on the first steps only."""
    value = value.detach()
    low, high, integers, sums = math.nan, math.nan, not value.is_floating_point(), False
    if value.numel() and not value.is_complex():
        wide = value.double()
        low, high = (float(bound) for bound in torch.aminmax(wide))
        integers = integers or bool((wide == wide.round()).all())
        sums = low >= 0 and value.dim() >= 2 and bool((wide.sum(1) - 1).abs().max() < 1e-3)
    dtype = str(value.dtype).removeprefix("torch.")
    return TensorFacts(tuple(value.shape), dtype, operation, low, high, integers, sums)
