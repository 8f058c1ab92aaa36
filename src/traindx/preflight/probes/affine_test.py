"""Probe: is the network affine in its input, so that its layers are one?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd  # pyright: ignore[reportPrivateUsage]

from traindx.messages import say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.probe import STEP, observed, probe
from traindx.preflight.structures import mapped, named_tensors
from traindx.records import Item, Scalar, Site

_SAMPLES = 16
"""Samples that are looked at."""
_CHANGE = 0.1
"""By which fraction the parameters are moved."""


class _Layer(NamedTuple):
    """A weighted layer on one pass.

    Attributes:
        output: What it returns.
        after_weights: Whether its input depends on parameters before it.
    """

    output: Tensor
    after_weights: bool


def _passes(case: Case) -> float:
    """Three forward passes of a part of the batch."""
    size = case.batch_size or 1
    return 1.2 * min(1.0, _SAMPLES / size) if _given(case) else 0.0


@probe(needs=("batch",), writes=("probe.curvature",), passes=_passes)
def affine_test(case: Case) -> Iterator[Item]:
    """How far the last layer is from affine in the input: f(x + d) + f(x - d) = 2 f(x)."""
    few = replace(case, loss_found=None).subset(_SAMPLES)  # the loss is not asked for
    found = _curvature(few)
    if found[0] < 1e-2:  # the exact answer costs a copy in float64
        exact = few.double()
        _move(exact.model)
        found = _curvature(exact)
    curvature, layers = found
    site = Site(case.name)
    yield Scalar(STEP, "probe.curvature", curvature, site)
    stacked = [fqn for fqn, layer in layers.items() if layer.after_weights]
    modules = dict(_named(case.model))
    widths = [_extent(modules[fqn]) for fqn in layers]
    last = list(layers)[-1]
    yield observed(
        "affine-test",
        Site(case.name, last),
        layers=[*list(layers)[:50]],
        stacked=len(stacked),
        narrowest=min((width[1] for width in widths[:-1]), default=0),
        given=widths[0][0],
        made=widths[-1][1],
    )


def _move(model: nn.Module) -> None:
    """Take what is trained from where it starts: a branch that begins times zero does bend."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for param in (param for param in model.parameters() if param.requires_grad):
            noise = torch.randn(param.shape, generator=generator, dtype=torch.float64).to(param)
            size = param.square().mean().sqrt().clamp_min(1e-2)
            param.add_(noise * size * _CHANGE)


def _extent(module: nn.Module) -> tuple[int, int]:
    """Inputs and outputs of a weighted layer, channels of a convolution."""
    if isinstance(module, nn.Linear):
        return module.in_features, module.out_features
    assert isinstance(module, _ConvNd)
    return module.in_channels, module.out_channels


def _named(model: nn.Module) -> Iterable[tuple[str, nn.Module]]:
    return cast("Iterable[tuple[str, nn.Module]]", cast(Any, model).named_modules())


def _curvature(case: Case) -> tuple[float, dict[str, _Layer]]:
    """The second difference of the last weighted layer over its first one, and all such layers."""
    given = _given(case)
    if not given:
        raise DoesNotApplyError(say("the input is not made of real numbers"))
    case.model.eval()  # dropout is off, and BatchNorm is affine
    generator = torch.Generator().manual_seed(0)
    steps = {id(t): (torch.randn(t.shape, generator=generator).to(t) * _spread(t)) for t in given}
    middle = _pass(case, steps, 0.0)
    if not middle:
        raise DoesNotApplyError(say("no linear layer or convolution was called"))
    after, before = _pass(case, steps, 1.0), _pass(case, steps, -1.0)
    last = list(middle)[-1]
    ahead, here, behind = (found[last].output.double() for found in (after, middle, before))
    slope = ahead - behind
    if not bool(slope.isfinite().all()) or not bool(slope.any()):
        raise DoesNotApplyError(say("the last layer does not change with the input"))
    bend = ahead + behind - 2 * here
    return float(bend.square().mean().sqrt() / slope.square().mean().sqrt()), middle


def _given(case: Case) -> list[Tensor]:
    """The tensors of real numbers among the arguments."""
    named = named_tensors([list(case.args), dict(case.kwargs)])
    return [t for _, t in named if t.is_floating_point() and t.dim() > 1]


def _spread(tensor: Tensor) -> Tensor:
    values = tensor.detach().double()
    return values.std(correction=0).clamp_min(1e-3).to(tensor.dtype)


def _pass(case: Case, steps: dict[int, Tensor], times: float) -> dict[str, _Layer]:
    """What the weighted layers return of the batch moved by some steps, in order of the calls."""
    found: dict[str, _Layer] = {}
    handles: list[Any] = []
    for fqn, module in _named(case.model):
        if isinstance(module, nn.Linear | _ConvNd):

            def note(_module: object, args: Any, output: Tensor, fqn: str = fqn) -> None:
                found[fqn] = _Layer(output.detach().clone(), args[0].grad_fn is not None)

            handles.append(cast(Any, module).register_forward_hook(note))

    def moved(tensor: Tensor) -> Tensor:
        return tensor + times * steps[id(tensor)] if id(tensor) in steps else tensor

    try:
        cast(Any, torch).manual_seed(0)
        case.output(mapped(list(case.args), moved), mapped(dict(case.kwargs), moved))
    finally:
        for handle in handles:
            handle.remove()
    return found
