"""Probe: are the units of a layer copies of each other, and will they stay so?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import Tensor, nn

from traindx.preflight.case import Case
from traindx.preflight.probe import STEP, observed, probe
from traindx.records import Item, Scalar, Site

_STEPS = 3
"""Steps of gradient descent after which units that began alike may differ."""
_STEP = 0.05
"""How far they go, of the size of the weights or of 1."""
_ROUNDING = 1e-5


def _passes(case: Case) -> float:
    """None, unless some layer begins with units that are alike."""
    return float(_STEPS) if any(_is_alike(p, b) for _, p, b in _layers(case.model)) else 0.0


@probe(needs=("loss",), writes=("probe.alike_layers",), passes=_passes)
def initialization_symmetry(case: Case) -> Iterator[Item]:
    """Which layers have units that are all alike, and stay so when they are trained."""
    suspects = [(f, p, b) for f, p, b in _layers(case.model) if _is_alike(p, b)]
    began = len(suspects)
    for _ in range(_STEPS if suspects else 0):
        cast(Any, torch).manual_seed(0)
        case.model.zero_grad(set_to_none=True)
        torch.autograd.backward(case.loss())
        suspects = [one for one in suspects if one[1].grad is not None]  # others are S005's, S012's
        _descend(case)
        suspects = [(f, p, b) for f, p, b in suspects if _is_alike(p, b)]
        if not suspects:
            break
    site = Site(case.name)
    yield Scalar(STEP, "probe.alike_layers", len(suspects), site)
    if suspects:
        first, weight, _ = suspects[0]
        yield observed(
            "initialization-symmetry",
            Site(case.name, first.rpartition(".")[0]),
            params=[fqn for fqn, _, _ in suspects[:50]],
            count=len(suspects),
            began=began,
            units=weight.shape[0],
            value=float(weight.detach().flatten()[0]),
        )


def _layers(model: nn.Module) -> Iterator[tuple[str, Tensor, Tensor | None]]:
    """Weights with several units that are trained, and the biases that belong to them."""
    named = dict(model.named_parameters())
    tables = {id(module.weight) for module in model.modules()
              if isinstance(module, nn.Embedding | nn.EmbeddingBag)}  # fmt: skip
    for fqn, param in named.items():
        if param.dim() < 2 or param.shape[0] < 2 or not param.requires_grad or id(param) in tables:
            continue
        place, _, name = fqn.rpartition(".")
        bias = named.get(".".join(filter(None, (place, name.replace("weight", "bias")))))
        own = bias is not None and bias is not param and bias.shape == param.shape[:1]
        yield fqn, param, bias if own else None


def _is_alike(weight: Tensor, bias: Tensor | None) -> bool:
    """Whether all units have the same weights and the same bias."""
    return _rows_alike(weight) and (bias is None or _rows_alike(bias))


def _rows_alike(tensor: Tensor) -> bool:
    rows = tensor.detach().flatten(1) if tensor.dim() > 1 else tensor.detach()[:, None]
    if not bool(torch.equal(rows[0], rows[-1])) and not _close(rows[0], rows[-1]):
        return False  # nearly always known from two rows
    return bool((rows - rows[0]).abs().max() <= _ROUNDING * rows.abs().max())


def _close(a: Tensor, b: Tensor) -> bool:
    return bool((a - b).abs().max() <= _ROUNDING * a.abs().max())


def _descend(case: Case) -> None:
    """A step along the gradient, of each parameter in proportion to its size."""
    with torch.no_grad():
        for _, param in case.trainable():
            grad = param.grad
            if grad is None:
                continue
            grad = grad.to_dense() if grad.is_sparse else grad
            size = grad.square().mean().sqrt()
            scale = param.square().mean().sqrt().clamp_min(1e-2)
            if bool(size > 0):
                param.sub_(grad * (_STEP * scale / size))
