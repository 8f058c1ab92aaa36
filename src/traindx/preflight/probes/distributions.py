"""Probe: how the values in every layer are distributed, of one forward and backward pass.

"Sanity checks", CS231n, "Neural Networks Part 3": activation and gradient distributions per layer.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn

from traindx.messages import say
from traindx.nested import tensors
from traindx.pictured import BINS, PROBABILITIES
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.probe import STEP, observed, probe
from traindx.records import Item, Site, Vector
from traindx.stats.memory import coprime

LAYERS = 128
"""Layers that are looked at, evenly spaced where there are more."""
_SAMPLE = 65_536
"""Elements of a tensor that are looked at."""
_TAIL = 0.002
"""Fraction at either end that a histogram leaves out, lest one value squeeze all others."""
_EACH = 0.01
"""Seconds that a layer costs besides."""
_SILENT = (nn.Flatten, nn.Unflatten, nn.Identity)
"""Layers that hand on what they are given."""
_KINDS = ("output", "gradient", "weight")


@probe(
    writes=tuple(f"probe.{kind}_{form}" for kind in _KINDS for form in ("histogram", "quantiles")),
    passes=1.5,
    seconds=lambda case: (
        _EACH * len(_spread([one for one in _named(case.model) if _computes(one[1])]))
    ),
)
def distributions(case: Case) -> Iterator[Item]:
    """How outputs, their gradients and the weights of every layer are distributed."""
    layers = [(fqn, module) for fqn, module in _named(case.model) if _computes(module)]
    found: list[Item] = []
    with _listening(case.name, _spread(layers), found):
        output = case.output()
        if case.loss_found is not None and (loss := case.loss_of(output)).requires_grad:
            torch.autograd.backward(loss)
    if not found:
        raise DoesNotApplyError(say("no layer makes real numbers of this batch"))
    yield from found
    shown = min(len(layers), LAYERS)
    yield observed("distributions", Site(case.name), layers=len(layers), shown=shown)


def _named(model: nn.Module) -> Iterable[tuple[str, nn.Module]]:
    return cast("Iterable[tuple[str, nn.Module]]", cast(Any, model).named_modules())


def _computes(module: nn.Module) -> bool:
    """Whether it holds parameters of its own, or no other module."""
    own = next(module.parameters(recurse=False), None)
    held = [name for name, _ in module.named_children() if name != "parametrizations"]
    return (own is not None or not held) and not isinstance(module, _SILENT)


def _spread(layers: list[tuple[str, nn.Module]]) -> list[tuple[str, nn.Module]]:
    if len(layers) <= LAYERS:
        return layers
    return [layers[round(i * (len(layers) - 1) / (LAYERS - 1))] for i in range(LAYERS)]


@contextmanager
def _listening(
    model: str, layers: list[tuple[str, nn.Module]], found: list[Item]
) -> Generator[None]:
    """Inside, the first call of each layer and its gradient are described in `found`."""
    heard: set[str] = set()
    handles: list[Any] = []
    for fqn, module in layers:

        def called(module: nn.Module, _args: object, output: object, fqn: str = fqn) -> None:
            if fqn in heard:  # again, or again for checkpointing
                return
            heard.add(fqn)
            _note(Site(model, fqn), module, output, found)

        handles.append(module.register_forward_hook(called))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _note(site: Site, module: nn.Module, output: object, found: list[Item]) -> None:
    made = next((t for t in tensors(output) if t.is_floating_point()), None)
    if made is not None:
        found.extend(_described(site, "output", made))
        if made.requires_grad:

            def flowed(gradient: Tensor) -> None:
                found.extend(_described(site, "gradient", gradient))

            cast(Any, made).register_hook(flowed)
    weight = _weight(module)
    if weight is not None and weight.is_floating_point():
        found.extend(_described(site, "weight", weight))


def _weight(module: nn.Module) -> Tensor | None:
    """What a layer is known by: `weight`, or the largest parameter of its own."""
    weight = getattr(module, "weight", None)
    if isinstance(weight, Tensor):
        return weight
    return max(module.parameters(recurse=False), key=torch.numel, default=None)


def _described(site: Site, kind: str, tensor: Tensor) -> list[Item]:
    if tensor.layout is not torch.strided or not tensor.numel():
        return []
    values = _sampled(tensor.detach())
    finite = values[values.isfinite()]
    histogram = _histogram(values, finite)
    items: list[Item] = [Vector(STEP, f"probe.{kind}_histogram", site, histogram)]
    if len(finite):
        at = torch.tensor(PROBABILITIES, dtype=finite.dtype)
        quantiles = torch.quantile(finite, at)
        items.append(Vector(STEP, f"probe.{kind}_quantiles", site, _numbers(quantiles)))
    return items


def _sampled(tensor: Tensor) -> Tensor:
    """Up to some 65,536 elements on the host, with a stride coprime to every extent."""
    flat = tensor.reshape(-1)
    flat = flat[:: coprime(max(1, -(-flat.numel() // _SAMPLE)), tensor.shape)].cpu()
    return flat if flat.dtype is torch.float64 else flat.float()


def _histogram(values: Tensor, finite: Tensor) -> tuple[float, ...]:
    """Its ends, fractions of exact zeros and of what is not finite, and counts of the rest."""
    others = finite[finite != 0]
    zeros, broken = len(finite) - len(others), len(values) - len(finite)
    ends = torch.zeros(2, dtype=values.dtype)
    counts = torch.zeros(BINS, dtype=values.dtype)
    if len(others):
        ends = torch.quantile(others, torch.tensor([_TAIL, 1 - _TAIL], dtype=others.dtype))
        low, high = _numbers(ends)
        if low < high:
            counts = torch.histc(others, BINS, low, high)
        else:
            counts[BINS // 2] = len(others)
    shares = torch.tensor([zeros, broken], dtype=values.dtype) / len(values)
    return _numbers(torch.cat([ends, shares, counts]))


def _numbers(values: Tensor) -> tuple[float, ...]:
    return tuple(cast(Any, values).tolist())
