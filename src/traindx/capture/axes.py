"""Which axis of a tensor holds the features of the layer that made it, read off the autograd graph.

Only names, shapes and axes of operations are read, never a value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from traindx.capture.nodes import name_of

_DEPTH = 16
"""Operations looked through, at most, on the way back from a normalization."""
_NORMS = ("NativeBatchNorm", "CudnnBatchNorm", "MiopenBatchNorm", "NativeLayerNorm")
_LINEAR = ("AddmmBackward0", "MmBackward0", "LinearBackward0")
_VIEWS = ("ViewBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0")
_MOVES = ("TransposeBackward0", "PermuteBackward0")
# Operations that leave every element where it is, by the name before `Backward`.
_IN_PLACE = {
    "Add", "Sub", "Mul", "Div", "Neg", "Relu", "LeakyRelu", "Gelu", "Silu", "Elu", "Selu", "Mish",
    "Tanh", "Sigmoid", "Softplus", "Hardtanh", "Hardswish", "Clone", "ToCopy", "Alias", "Copy",
    "NativeDropout", "NativeBatchNorm", "CudnnBatchNorm", "MiopenBatchNorm", "NativeLayerNorm",
    "NativeGroupNorm",
}  # fmt: skip
_POOLS = ("MaxPool", "AvgPool", "AdaptiveAvg", "AdaptiveMax")


class Input(NamedTuple):
    """What a normalization was given: its axes, and which of them holds the features."""

    dims: int
    feature_axis: int


def normalized_input(node: Any) -> Input | None:
    """The input of the LayerNorm or BatchNorm whose output a node is, or a rearrangement of it.

    None if there is none so near, or if it is not clear which axis holds the features: where
    branches that are added disagree, or behind a reshape.
    """
    node = norm_behind(node)
    child = None if node is None else node.next_functions[0][0]
    axis = None if child is None else _feature_axis(child, _DEPTH)
    return None if axis is None else Input(len(_shape(node)), axis)


def norm_behind(node: Any) -> Any:
    """The operation of LayerNorm or BatchNorm that a module's output comes from, if it is near."""
    for _ in range(4):
        if node is None or name_of(node).startswith(_NORMS):
            return node
        node = next(_children(node), None)
    return None


def _feature_axis(node: Any, depth: int) -> int | None:
    name, dims = name_of(node), len(_shape(node))
    kind = name.partition("Backward")[0]
    if not depth:
        return None
    if name in _LINEAR:
        return _of_linear(node, dims, depth)
    if name in _VIEWS:
        return _of_view(node, dims, depth)
    if name in _MOVES:
        return _of_move(node, name, dims, depth)
    if name == "ConvolutionBackward0":
        return 1
    if name == "EmbeddingBackward0":
        return dims - 1
    if kind.startswith(_POOLS) or kind.startswith("Native"):
        child = next(_children(node), None)
        return None if child is None else _feature_axis(child, depth - 1)
    if kind in _IN_PLACE:
        axes = {_feature_axis(child, depth - 1) for child in _of_dims(node, dims)}
        return axes.pop() if len(axes) == 1 else None
    return None


def _of_linear(node: Any, dims: int, depth: int) -> int | None:
    """The last axis, unless another one was moved there for the layer alone (mixing positions)."""
    given = _input_of_linear(node)
    for _ in range(4):
        if given is None:
            break
        if name_of(given) in _MOVES and len(_shape(given)) == dims:
            return _feature_axis(given, depth - 1)
        kind = name_of(given).partition("Backward")[0]
        if kind not in _IN_PLACE and name_of(given) not in _VIEWS:
            break
        given = next(_children(given), None)
    return dims - 1


def _input_of_linear(node: Any) -> Any:
    """What a linear operation multiplies by its weight; None of data."""
    for child in _children(node):
        name = name_of(child)
        if not name.endswith("AccumulateGrad") and name != "TBackward0":
            return child
    return None


def _of_view(node: Any, dims: int, depth: int) -> int | None:
    """Of a linear layer's rows given back the axes they had: still the last one."""
    child = next(_children(node), None)
    if child is None or name_of(child) not in _LINEAR or _shape(child)[-1] != _shape(node)[-1]:
        return None
    return _of_linear(child, dims, depth)


def _of_move(node: Any, name: str, dims: int, depth: int) -> int | None:
    child = next(_children(node), None)
    axis = None if child is None else _feature_axis(child, depth - 1)
    if axis is None:
        return None
    if name == "PermuteBackward0":
        order = [_axis(saved, dims) for saved in node._saved_dims]
        return order.index(axis)
    first, second = _axis(node._saved_dim0, dims), _axis(node._saved_dim1, dims)
    return {first: second, second: first}.get(axis, axis)


def _axis(saved: int, dims: int) -> int:
    """An axis from 0: autograd saves a negative one as an unsigned number."""
    return (saved - 2**64 if saved >= 2**63 else saved) % dims


def _shape(node: Any) -> tuple[int, ...]:
    metadata = getattr(node, "_input_metadata", None)
    return tuple(metadata[0].shape) if metadata else ()


def _children(node: Any) -> Iterator[Any]:
    return (child for child, _ in node.next_functions if child is not None)


def _of_dims(node: Any, dims: int) -> Iterator[Any]:
    """The operands that are not broadcast; a parameter or the data itself tells nothing."""
    return (child for child in _children(node) if len(_shape(child)) == dims)
