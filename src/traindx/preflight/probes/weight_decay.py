"""Probe: how fast weight decay pulls the weights of normalization layers and biases to zero."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, cast

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase  # pyright: ignore[reportPrivateUsage]

from traindx.messages import say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.probe import STEP, observed, probe
from traindx.records import Item, Scalar, Site

_NORMS = (_NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)
_PLAIN = ("SGD", "AdamW")
"""Optimizers that multiply a weight by 1 - lr * weight_decay in each step."""


@probe(needs=("optimizer",), writes=("probe.decay_half_life",), passes=0.0)
def weight_decay(case: Case) -> Iterator[Item]:
    """After how many steps decay alone halves the weights of normalization layers and biases."""
    optimizer = case.optimizer
    assert optimizer is not None
    if not any(_rate(group) for group in optimizer.param_groups):
        raise DoesNotApplyError(say("the optimizer has no weight decay"))
    if type(optimizer).__name__ not in _PLAIN:
        kind = type(optimizer).__name__
        raise DoesNotApplyError(
            say("how fast the decay of {kind} is depends on gradients", kind=kind)
        )
    norms = _norms(case.model)
    fastest, names, biases = 0.0, list[str](), 0
    for group in optimizer.param_groups:
        held: list[Tensor] = group["params"]
        within = [norms[id(param)] for param in held if id(param) in norms]
        if within and _rate(group):
            fastest = max(fastest, _rate(group))
            names += within
        if _rate(group):
            biases += sum(param.dim() == 1 and id(param) not in norms for param in held)
    half_life = math.log(2) / fastest if fastest else math.inf
    site = Site(case.name)
    yield Scalar(STEP, "probe.decay_half_life", half_life, site)
    yield observed(
        "weight-decay", site, norms=list(names[:50]), num_norms=len(names), biases=biases
    )


def _norms(model: nn.Module) -> dict[int, str]:
    """The parameters of normalization layers, by their ids."""
    named = cast("Iterable[tuple[str, nn.Module]]", cast(Any, model).named_modules())
    return {
        id(param): f"{fqn}.{name}"
        for fqn, module in named
        if isinstance(module, _NORMS)
        for name, param in module.named_parameters(recurse=False)
    }


def _rate(group: dict[str, Any]) -> float:
    """The fraction of itself that a weight loses in a step."""
    return float(group.get("lr") or 0.0) * float(group.get("weight_decay") or 0.0)
