"""Attention in the autograd graph behind a loss, however it was called.

One operation (`scaled_dot_product_attention` where a fused kernel runs), or a softmax between two
matrix products: the same function with dropout, `nn.MultiheadAttention` with its weights, and
attention that is written out. Autograd keeps what each of them needs for backward, so nothing has
to be replaced to see them, and a sample of rows can be computed again from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, cast

import torch
from torch import Tensor

from traindx.capture.attention_rows import (
    Rows,
    Sample,
    Shape,
    biased_softmax,
    products,
    seen_through,
)
from traindx.capture.nodes import name_of, saved
from traindx.messages import say
from traindx.stats import unmeasurable

_LIMIT = 50_000
_HOPS = 16
_SOFTMAXES = ("SoftmaxBackward0", "SafeSoftmaxBackward0")
_PRODUCTS = {"BmmBackward0": ("self", "mat2"), "BaddbmmBackward0": ("batch1", "batch2")}
_VIEWS = ("ViewBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0", "SqueezeBackward1")
_SAME = (
    *("AddBackward0", "AliasBackward0", "CloneBackward0", "MaskedFillBackward0"),
    *("MaskedFillBackward1", "SubBackward0", "ToCopyBackward0", "WhereBackward0"),
)
_SCALED = ("MulBackward0", "MulBackward1", "DivBackward0", "DivBackward1")
# What may stand between the weights and the product with the values: their dropout, too.
_PASSED_ON = {
    *(*_VIEWS, *_SAME, *_SCALED, "ExpandBackward0", "NativeDropoutBackward0"),
    *("PermuteBackward0", "SqueezeBackward0", "TransposeBackward0", "UnsqueezeBackward0"),
}

_AWAY = say("its operands are kept elsewhere (checkpointing, offloading) or have changed since")
_FORM = say("it is written in a way that is not understood")


class _NotMeasuredError(Exception):
    """The attention cannot be computed again; its argument is the reason."""


class Attention:
    """One attention: an operation, or the softmax in the middle of several.

    Attributes:
        order: Its place among all operations of its thread that autograd has noted.
    """

    def __init__(self, node: Any) -> None:
        self._node = node
        self.order: int = node._sequence_nr()

    def rows(self, turn: int) -> Rows | str:
        """A sample of its rows, or why there is none."""
        read = _written_out if name_of(self._node) in _SOFTMAXES else _fused
        try:
            return read(self._node, turn)
        except _NotMeasuredError as reason:
            return cast(str, reason.args[0])


def attentions(root: Any) -> list[Attention]:
    """Every attention behind a node."""
    found: dict[Any, Attention] = {}
    for node, name in _graph(root):
        centre: Any = None
        if name in _PRODUCTS:
            centre = _softmax_before(node)
        elif name.startswith("ScaledDotProduct"):
            centre = node
        if centre is not None:
            found[centre] = Attention(centre)
    return [*found.values()]


def _graph(root: Any) -> Iterator[tuple[Any, str]]:
    """Every operation behind one, up to a limit, and its name."""
    names: dict[Any, str] = {}  # a dictionary's look-up is cheaper than the question
    seen, waiting = {root}, [root]
    while waiting and len(seen) < _LIMIT:
        node = waiting.pop()
        kind = cast(Any, type(node))
        if kind not in names:
            names[kind] = name_of(node)
        yield node, names[kind]
        for before, _ in node.next_functions:
            if before is not None and before not in seen:
                seen.add(before)
                waiting.append(before)


def _softmax_before(product: Any) -> Any:
    """The softmax whose result goes into a product as its first matrix, or nothing."""
    node = product.next_functions[-2][0]
    for _ in range(_HOPS):
        if node is None:
            return None
        name = name_of(node)
        if name in _SOFTMAXES:
            return node
        if name not in _PASSED_ON:
            return None
        node = _data_of(node)
    return None


def _data_of(node: Any) -> Any:
    """What a node was made of: its first operand that has a graph."""
    return next((before for before, _ in node.next_functions if before is not None), None)


# -- one operation -------------------------------------------------------------------------------


def _fused(node: Any, turn: int) -> Rows:
    query, key = _kept(node, "query"), _kept(node, "key")  # (B, H, L, E), (B, H / groups, S, E)
    if query.dim() != 4 or key.dim() != 4 or query.shape[1] % key.shape[1]:
        raise _NotMeasuredError(_FORM)
    shape = cast("Shape", (*query.shape[:3], key.shape[2]))
    sample = Sample(shape, turn)
    scale = getattr(node, "_saved_scale", None)
    groups = query.shape[1] // key.shape[1]
    keys = key if groups == 1 else key.repeat_interleave(groups, 1)
    scale = 1 / math.sqrt(query.shape[3]) if scale is None else scale
    logits = products(sample.rows(query), sample.heads(keys), scale)
    bias, allowed = _mask(node, sample, shape)
    return Rows(logits, biased_softmax(logits, bias, allowed), allowed)


def _mask(node: Any, sample: Sample, shape: Shape) -> tuple[Tensor | None, Tensor | None]:
    """What is added to the sampled logits, and which keys are let through."""
    mask = _kept_mask(node)
    if mask is not None:
        rows = sample.rows(mask.expand(shape))
        if not rows.is_floating_point():
            return None, rows.bool()
        # A mask may forbid by the least number there is in place of -inf.
        return rows.float(), rows > 0.5 * torch.finfo(rows.dtype).min
    if not getattr(node, "_saved_is_causal", False):
        return None, None
    device = _kept(node, "query").device
    return None, sample.positions(device) >= torch.arange(shape[3], device=device)


def _kept_mask(node: Any) -> Tensor | None:
    for name in ("attn_mask", "attn_bias"):
        if (mask := saved(node, name)) is not None:
            return mask
    return None


# -- a softmax between two products --------------------------------------------------------------


def _written_out(softmax: Any, turn: int) -> Rows:
    weights = _kept(softmax, "result")  # (B, H, L, S), or (B * H, L, S)
    if _signed(softmax._saved_dim) not in (-1, weights.dim() - 1) or weights.dim() not in (3, 4):
        raise _NotMeasuredError(_FORM)
    product, scale = _logits_before(softmax, tuple(weights.shape))
    left, right = (_kept(product, operand) for operand in _PRODUCTS[name_of(product)])
    shape = cast("Shape", (1, *weights.shape)[-4:])
    if (left.shape[0], left.shape[1], right.shape[2]) != (shape[0] * shape[1], *shape[2:]):
        raise _NotMeasuredError(_FORM)
    sample = Sample(shape, turn)
    query = sample.rows(_split(left, shape))
    key = sample.heads(_split(right, shape)).transpose(-1, -2)
    logits = products(query, key, scale)
    probabilities = sample.rows(weights[(None,) * (4 - weights.dim())])
    return Rows(logits, probabilities, seen_through(logits, probabilities))


def _split(tensor: Tensor, shape: Shape) -> Tensor:
    """(B * H, *, *) -> (B, H, *, *), a view."""
    return cast(Any, tensor).unflatten(0, shape[:2])


def _logits_before(softmax: Any, shape: tuple[int, ...]) -> tuple[Any, float | Tensor]:
    """The product of queries and keys behind a softmax, and what it was multiplied by since.

    Args:
        softmax: The softmax.
        shape: Of its input, followed back to be sure that no axis has changed its place.
    """
    scale: float | Tensor = 1.0
    node: Any = _data_of(softmax)
    for _ in range(_HOPS):
        if node is None:
            break
        name = name_of(node)
        if name in _PRODUCTS:
            return node, scale * getattr(node, "_saved_alpha", 1)
        if name in _SCALED:
            scale = scale / _factor(node) if name.startswith("Div") else scale * _factor(node)
        elif name in _VIEWS:
            shape = tuple(node._saved_self_sym_sizes)
        elif name in _MOVED:
            shape = _moved_back(shape, _MOVED[name](node, len(shape)))
        elif name not in _SAME:
            break
        node = _data_of(node)
    raise _NotMeasuredError(_FORM)


def _factor(node: Any) -> Any:
    """The one number that a node multiplies by, or divides by."""
    other = getattr(node, "_saved_other", None)
    if isinstance(other, Tensor) and other.numel() == 1:
        return other.detach().reshape(())
    if isinstance(other, int | float):
        return other
    raise _NotMeasuredError(_FORM)


def _permuted(node: Any, _: int) -> list[int]:
    return [*node._saved_dims]


def _transposed(node: Any, dims: int) -> list[int]:
    order = [*range(dims)]
    first, second = (_signed(dim) for dim in (node._saved_dim0, node._saved_dim1))
    order[first], order[second] = order[second], order[first]
    return order


def _unsqueezed(node: Any, dims: int) -> list[int]:
    """As a permutation of an input with its new axis at the end."""
    order = [*range(dims - 1)]
    order.insert(_signed(node._saved_dim) % dims, dims - 1)
    return order


_MOVED: dict[str, Callable[[Any, int], list[int]]] = {
    "PermuteBackward0": _permuted,
    "TransposeBackward0": _transposed,
    "UnsqueezeBackward0": _unsqueezed,
}


def _moved_back(shape: tuple[int, ...], order: list[int]) -> tuple[int, ...]:
    """The shape before axes were put in this order, if those longer than 1 have kept theirs."""
    order = [_signed(dim) % len(shape) for dim in order]
    long = [dim for dim, length in zip(order, shape, strict=True) if length != 1]
    if long != sorted(long):
        raise _NotMeasuredError(_FORM)
    lengths = dict(zip(order, shape, strict=True))
    return tuple(lengths[dim] for dim in range(len(shape)))


def _signed(number: int) -> int:
    """Autograd shows some negative numbers as the rest modulo 2^64."""
    return number - 2**64 if number >= 2**63 else number


def _kept(node: Any, operand: str) -> Tensor:
    tensor = saved(node, operand)
    if tensor is None:
        raise _NotMeasuredError(_AWAY)
    if reason := unmeasurable(tensor):
        raise _NotMeasuredError(reason)
    return tensor.detach()
