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
# Operations whose derivative is at most 1 in magnitude, so that a bound passes through them.
_CONTRACTIVE = (
    "Relu", "Tanh", "View", "Reshape", "Add", "Sub", "Neg", "T", "Transpose", "Permute",
    "Squeeze", "Unsqueeze", "Mean", "MaxPool", "AvgPool", "AdaptiveAvg", "Slice", "Select", "Cat",
    "Clone", "ToCopy", "Hardtanh", "Clamp", "Softplus", "LeakyRelu", "Elu", "Abs",
    "LogSoftmax", "NllLoss", "BinaryCrossEntropyWithLogits", "UnsafeView", "Alias", "Copy",
)  # fmt: skip
# What may stand between a weight and its use: a transpose, or a cast (of autocast).
_RESHAPED = ("TBackward0", "TransposeBackward0", "PermuteBackward0", "ToCopyBackward0")


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
        self.operation: str = root.name()
        self._nodes = _from_loss_to_leaves(root)
        self.leaves: list[Tensor] = [node.variable for node in self._nodes if _is_leaf(node)]

    def paths(self) -> dict[int, PathFacts]:
        """The backward path of least resistance to each parameter, by the parameter's id.

        Spectral norms are read (one synchronization) only where 4 sigmoids stand in a chain.
        """
        paths = self._best(lambda _weight: 0.0)
        if any(path.sigmoids >= 4 and not path.norms for path in paths.values()):
            paths = self._best(_log10_spectral_norm)
        return paths

    def _best(self, log10_norm: Callable[[Tensor], float]) -> dict[int, PathFacts]:
        best: dict[Any, _Path] = {self._nodes[0]: _Path()}
        for node in self._nodes:
            here = best[node].through(node.name())
            weight = _weight_of(node)
            gain = 0.0 if weight is None else log10_norm(weight)
            for child in _children(node):
                into_weight = weight is None or _leaf(child) is not None
                path = here if into_weight else here.scaled(gain)
                if child not in best or path.log10 > best[child].log10:
                    best[child] = path
        return {id(node.variable): best[node].facts() for node in self._nodes if _is_leaf(node)}

    def comparison(self, outputs: list[Tensor]) -> Comparison | None:
        """The first known loss operation, with what it compared.

        Args:
            outputs: Outputs of models, for the values of a prediction that autograd did not save.
        """
        node = next((node for node in self._nodes[:64] if node.name() in _LOSSES), None)
        if node is None:
            return None
        target = _saved(node, "target")
        return Comparison(
            node.name(),
            _prediction(node, outputs),
            None if target is None else _tensor_facts(_unexpanded(target), ""),
        )


@dataclass(frozen=True, slots=True)
class _Path:
    """A path from the loss so far: counts, its log10 bound, and whether the bound holds."""

    sigmoids: int = 0
    norms: int = 0
    log10: float = 0.0
    bounded: bool = True

    def through(self, name: str) -> _Path:
        sigmoid, norm = name in _SIGMOIDS, any(kind in name for kind in _NORMS)
        known = sigmoid or name.startswith(_CONTRACTIVE) or _is_linear(name) or "Accumulate" in name
        return _Path(
            self.sigmoids + sigmoid,
            self.norms + norm,
            self.log10 + (_QUARTER if sigmoid else 0.0),
            self.bounded and known and not norm,
        )

    def scaled(self, log10: float) -> _Path:
        return _Path(self.sigmoids, self.norms, self.log10 + log10, self.bounded)

    def facts(self) -> PathFacts:
        return PathFacts(self.sigmoids, self.norms, self.log10 if self.bounded else None)


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
    return node.name().endswith("AccumulateGrad")


def _leaf(node: Any) -> Tensor | None:
    """The parameter behind a node, directly or through a transpose or a cast."""
    for _ in range(3):
        if _is_leaf(node):
            return node.variable
        children = list(_children(node))
        if len(children) != 1 or node.name() not in _RESHAPED:
            return None
        node = children[0]
    return None


def _weight_of(node: Any) -> Tensor | None:
    """The weight matrix that a linear operation multiplies its input by."""
    if not _is_linear(node.name()):
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


def _saved(node: Any, name: str) -> Tensor | None:
    value = getattr(node, f"_saved_{name}", None)
    return value if isinstance(value, Tensor) else None


def _prediction(loss: Any, outputs: list[Tensor]) -> TensorFacts | None:
    """What was compared, before what the loss functions apply themselves.

    That is cross-entropy's log-softmax, and the expansion to a common shape.
    """
    node = next(_children(loss), None)
    if node is not None and node.name() == "ExpandBackward0":
        node = next(_children(node), None)
    if node is None:
        return None
    if loss.name().startswith("NllLoss") and node.name() == "LogSoftmaxBackward0":
        node = next(_children(node), node)
    made = next((output for output in outputs if output.grad_fn is node), None)
    value = made if made is not None else _saved(node, "result")
    if value is None and not loss.name().startswith("NllLoss"):
        value = _saved(loss, "self")
    if value is None:
        return _shape_facts(node)
    return _tensor_facts(_unexpanded(value), node.name())


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
    return TensorFacts(shape, dtype, node.name(), math.nan, math.nan, False, False)


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
