"""BatchNorm in evaluation put into the convolution or linear layer before it.

In evaluation BatchNorm is an affine map of each channel, so y = BN(Wx + b) is one layer of weight
W s and bias (b - mean) s + beta, with s = weight / sqrt(running_var + eps). Which layer feeds which
is read from the autograd graph of one forward pass, and the folded model is compared with the
original on the same input before it is given out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm  # pyright: ignore[reportPrivateUsage]
from torch.nn.modules.conv import (
    _ConvNd,  # pyright: ignore[reportPrivateUsage]
    _ConvTransposeNd,  # pyright: ignore[reportPrivateUsage]
)
from torch.nn.utils import parametrize

from traindx.errors import UsageError
from traindx.messages import Message, say
from traindx.norm.modules.connections import Links, Weighted, connections, named, outputs
from traindx.trial import copied, unchanged

_ROUNDING = 64
"""Machine epsilons of the greatest output by which the folded model may differ, per layer."""


@dataclass(frozen=True, slots=True)
class Folded:
    """A pair made one.

    Attributes:
        layer: The convolution or linear layer.
        norm: The BatchNorm layer, now `nn.Identity`.
    """

    layer: str
    norm: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A BatchNorm layer that stays, and why."""

    norm: str
    reason: Message


@dataclass(frozen=True, slots=True)
class Folding:
    """A folded model and the proof that it is the same.

    Attributes:
        model: A copy, in evaluation, with the pairs folded.
        folded: The pairs.
        refused: What stays as it was.
        difference: Greatest difference of an output on the input given.
        allowed: What rounding may make of it.
    """

    model: nn.Module
    folded: tuple[Folded, ...]
    refused: tuple[Refused, ...]
    difference: float
    allowed: float


def fold(model: nn.Module, *inputs: Any) -> Folding:
    """Fold every BatchNorm layer that can be.

    Args:
        model: Left as it is.
        inputs: What it is called with: its layers' connections are seen on them, and both models
            are compared on them.

    Raises:
        UsageError: The model has no BatchNorm, fails, or differs once folded.
    """
    if not any(isinstance(module, _BatchNorm) for module in model.modules()):
        raise UsageError(
            say("Folding needs BatchNorm layers; {model} has none.", model=type(model).__name__)
        )
    folding = copied(model).eval()
    with unchanged(folding):
        before, links = connections(folding, inputs)
    folded, refused = _fold_all(folding, links)
    with unchanged(folding), torch.no_grad():
        after = outputs(folding, inputs)
    difference, allowed = _compared(before, after, len(folded))
    if not difference <= allowed:
        raise UsageError(
            say(
                "The folded model differs by {difference:.3g}, where rounding allows "
                "{allowed:.3g}: something between its layers cannot be seen. It is not given out.",
                difference=difference,
                allowed=allowed,
            )
        )
    return Folding(folding, tuple(folded), tuple(refused), difference, allowed)


# -- folding --------------------------------------------------------------------------------------


def _fold_all(model: nn.Module, links: Links) -> tuple[list[Folded], list[Refused]]:
    modules = dict(named(model))
    shared = _shared(modules.values())
    folded: list[Folded] = []
    refused: list[Refused] = []
    for fqn, norm in modules.items():
        if not isinstance(norm, _BatchNorm):
            continue
        layer = links.fed_by.get(fqn)
        reason = next(_obstacles(fqn, norm, layer, modules, links, shared), None)
        if reason is not None or layer is None:
            refused.append(Refused(fqn, reason or _NOT_FED))
            continue
        _fold(cast(Weighted, modules[layer]), norm)
        _replace(model, fqn, nn.Identity().eval())
        folded.append(Folded(layer, fqn))
    return folded, refused


_NOT_FED = say("its input is not the output of a convolution or linear layer")


def _obstacles(
    fqn: str,
    norm: _BatchNorm,
    layer: str | None,
    modules: dict[str, nn.Module],
    links: Links,
    shared: set[int],
) -> Iterator[Message]:
    """Why a norm cannot be folded."""
    if norm.running_mean is None or norm.running_var is None:
        yield say("it keeps no running statistics, so it depends on the batch in evaluation, too")
        return
    if not links.calls[fqn]:
        yield say("it was not called")
    if layer is None:
        yield _NOT_FED
        return
    if links.calls[fqn] > 1 or links.calls[layer] > 1:
        yield say("it or {layer} is called several times", layer=layer)
    if links.uses.get(layer, 0) > 1:
        yield say("the output of {layer} is used elsewhere, too", layer=layer)
    before = modules[layer]
    spatial = len(before.kernel_size) if isinstance(before, _ConvNd) else 0
    if links.dims[fqn] != spatial + 2:
        yield say("it does not normalize the channels of {layer}", layer=layer)
    if parametrize.is_parametrized(before) or id(before.weight) in shared:
        yield say("the weight of {layer} is shared or parametrized", layer=layer)
    scale, shift = _map(norm)
    if not bool(scale.isfinite().all() and shift.isfinite().all()):
        yield say("its statistics are not finite, or its variance is negative")


def _shared(modules: Iterable[nn.Module]) -> set[int]:
    """Ids of parameters that several modules hold."""
    held = Counter(id(param) for module in modules for param in module.parameters(recurse=False))
    return {param for param, times in held.items() if times > 1}


def _map(norm: _BatchNorm) -> tuple[Tensor, Tensor]:
    """Scale and shift of each channel in evaluation, in float64."""
    mean, var = cast(Tensor, norm.running_mean).double(), cast(Tensor, norm.running_var).double()
    scale = (var + norm.eps).rsqrt()
    weight, bias = cast("Tensor | None", norm.weight), cast("Tensor | None", norm.bias)
    scale = scale if weight is None else scale * weight.detach().double()
    shift = -mean * scale
    return scale, shift if bias is None else shift + bias.detach().double()


def _fold(layer: Weighted, norm: _BatchNorm) -> None:
    scale, shift = _map(norm)
    weight = layer.weight.detach()
    bias = cast("Tensor | None", layer.bias)
    moved = shift if bias is None else bias.detach().double() * scale + shift
    if isinstance(layer, _ConvTransposeNd):  # (in, out / groups, ...): groups lie along the inputs
        parts = scale.view(layer.groups, 1, -1).expand(-1, weight.shape[0] // layer.groups, -1)
        by = parts.reshape(weight.shape[0], weight.shape[1], *([1] * (weight.dim() - 2)))
    else:
        by = scale.view(-1, *([1] * (weight.dim() - 1)))
    layer.weight = nn.Parameter((weight.double() * by).to(weight), layer.weight.requires_grad)
    layer.bias = nn.Parameter(moved.to(weight), layer.weight.requires_grad)


def _replace(model: nn.Module, fqn: str, module: nn.Module) -> None:
    parent, _, name = fqn.rpartition(".")
    setattr(model.get_submodule(parent), name, module)


def _compared(before: Sequence[Tensor], after: Sequence[Tensor], pairs: int) -> tuple[float, float]:
    """Greatest difference, and what rounding may make of it."""
    difference = allowed = 0.0
    for old, new in zip(before, after, strict=True):
        if not old.is_floating_point():
            difference = difference if old.equal(new) else float("inf")
        elif old.numel():
            size = float(old.detach().double().abs().max())
            eps = torch.finfo(old.dtype).eps
            allowed = max(allowed, _ROUNDING * eps * size * (pairs + 1))
            difference = max(difference, _farthest(old.double(), new.detach().double()))
    return difference, allowed


def _farthest(old: Tensor, new: Tensor) -> float:
    """The greatest difference; what is not finite is the same, or infinitely far."""
    same = (old == new) | (old.isnan() & new.isnan())
    apart = (new - old).abs().where(~same, 0.0)
    return float(apart.nan_to_num(nan=float("inf"), posinf=float("inf")).max())
