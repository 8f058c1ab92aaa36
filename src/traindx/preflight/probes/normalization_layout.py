"""Probe: what each normalization layer normalizes over, and the biases that it undoes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm  # pyright: ignore[reportPrivateUsage]
from torch.nn.modules.conv import _ConvNd  # pyright: ignore[reportPrivateUsage]
from torch.nn.modules.instancenorm import _InstanceNorm  # pyright: ignore[reportPrivateUsage]

from traindx.messages import say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.probe import STEP, observed, probe
from traindx.records import Item, Scalar, Site

_NORMS = (_BatchNorm, _InstanceNorm, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)
_UNDONE = 1e-4
"""Greatest gradient of a bias, of its weight's, that is rounding (RMS)."""


class _Seen(NamedTuple):
    """One call of a normalization.

    Attributes:
        module: The layer.
        shape: Of its input.
        source: The layer whose very output it was given; empty if it was another tensor.
        training: Whether it used the batch's statistics.
    """

    module: nn.Module
    shape: tuple[int, ...]
    source: str
    training: bool


def _passes(case: Case) -> float:
    """A forward pass, and a backward pass where a bias may be undone."""
    norms = [module for module in case.model.modules() if isinstance(module, _NORMS)]
    if not norms:
        return 0.0
    return 0.8 if any(isinstance(m, _BatchNorm | _InstanceNorm) for m in norms) else 0.5


@probe(writes=("probe.norm_group", "probe.undone_biases"), passes=_passes)
def normalization_layout(case: Case) -> Iterator[Item]:
    """How many numbers each normalization takes a mean of, and which biases it undoes."""
    modules = dict(_named(case.model))
    if not any(isinstance(module, _NORMS) for module in modules.values()):
        raise DoesNotApplyError(say("the model has no normalization layer"))
    seen, output = _seen(case, modules)
    for fqn, one in seen.items():
        site = Site(case.name, fqn)
        size = _group(one)
        yield Scalar(STEP, "probe.norm_group", size, site)
        yield observed(
            "normalization-layout",
            site,
            kind=type(one.module).__name__,
            shape=list(one.shape),
            source=one.source,
            source_kind=type(modules[one.source]).__name__ if one.source else "",
            channels_first=bool(one.source) and isinstance(modules[one.source], _ConvNd),
            normalized_axes=_axes(one),
            training=one.training,
        )
    sources = {one.source: fqn for fqn, one in seen.items() if one.source and _undoes(one)}
    yield from _undone(case, sources, modules, output)


def _named(model: nn.Module) -> Iterable[tuple[str, nn.Module]]:
    return cast("Iterable[tuple[str, nn.Module]]", cast(Any, model).named_modules())


def _seen(case: Case, modules: dict[str, nn.Module]) -> tuple[dict[str, _Seen], Any]:
    """The first call of each normalization in one forward pass, and the output of the model."""
    made: dict[int, tuple[Tensor, str]] = {}  # holds them, so that no id is used twice
    seen: dict[str, _Seen] = {}
    handles: list[Any] = []
    for fqn, module in modules.items():
        if isinstance(module, _ConvNd | nn.Linear):

            def leaving(_module: object, _args: object, output: Any, fqn: str = fqn) -> None:
                made[id(output)] = output, fqn

            handles.append(cast(Any, module).register_forward_hook(leaving))
        elif isinstance(module, _NORMS):

            def entering(module: Any, args: Any, fqn: str = fqn) -> None:
                if args and isinstance(args[0], Tensor) and fqn not in seen:
                    source = made.get(id(args[0]), (None, ""))[1]
                    by_batch = module.training or getattr(module, "running_mean", None) is None
                    seen[fqn] = _Seen(module, tuple(args[0].shape), source, by_batch)

            handles.append(cast(Any, module).register_forward_pre_hook(entering))
    try:
        output = case.output()
    finally:
        for handle in handles:
            handle.remove()
    return seen, output


def _group(one: _Seen) -> int:
    """How many numbers share a mean and a deviation."""
    module, shape = one.module, one.shape
    if isinstance(module, nn.LayerNorm | nn.RMSNorm):
        return math.prod(module.normalized_shape)
    if isinstance(module, nn.GroupNorm):
        return module.num_channels // module.num_groups * math.prod(shape[2:])
    if isinstance(module, _InstanceNorm):
        return math.prod(shape[-_space(module) :])
    return math.prod(shape) // (shape[1] if len(shape) > 1 else 1)


def _space(module: nn.Module) -> int:
    """Axes of space of an instance normalization."""
    return int(type(module).__name__[-2]) if type(module).__name__[-2].isdigit() else 1


def _axes(one: _Seen) -> list[Any]:
    """The axes normalized over by a layer that is told a shape."""
    if not isinstance(one.module, nn.LayerNorm | nn.RMSNorm):
        return []
    count = len(one.module.normalized_shape)
    return list(range(len(one.shape) - count, len(one.shape)))


# -- biases ----------------------------------------------------------------------------------------


def _undoes(one: _Seen) -> bool:
    """Whether it subtracts the mean of each channel, and with it any bias."""
    module = one.module
    if isinstance(module, nn.GroupNorm):
        return module.num_groups == module.num_channels
    return isinstance(module, _BatchNorm | _InstanceNorm) and one.training


def _undone(
    case: Case, sources: dict[str, str], modules: dict[str, nn.Module], output: Any
) -> Iterator[Item]:
    """The biases right before a normalization whose gradient is nothing but rounding."""
    found: list[str] = []
    with_bias = [f for f in sources if isinstance(getattr(modules[f], "bias", None), nn.Parameter)]
    if with_bias and case.loss_found is not None:
        torch.autograd.backward(case.loss_of(output))
        for fqn in with_bias:
            weight, bias = (
                cast(nn.Parameter, getattr(modules[fqn], n)) for n in ("weight", "bias")
            )
            if weight.grad is not None and bias.grad is not None:
                limit = _UNDONE * float(weight.grad.double().square().mean().sqrt())
                if limit > 0 and float(bias.grad.double().square().mean().sqrt()) < limit:
                    found.append(fqn)
    yield Scalar(STEP, "probe.undone_biases", len(found), Site(case.name))
    if found:
        yield observed(
            "undone-biases",
            Site(case.name, found[0]),
            layers=list(found[:50]),
            count=len(found),
            norm=sources[found[0]],
            elements=sum(cast(Tensor, modules[fqn].bias).numel() for fqn in found),
        )
