"""Probe: the loss of the untrained model beside that of a guess that looks at nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from traindx.messages import say
from traindx.preflight.case import Case, Compared, DoesNotApplyError
from traindx.preflight.comparing import apart, replaced, seeded, without_graph
from traindx.preflight.probe import STEP, observed, probe
from traindx.preflight.structures import named_tensors
from traindx.records import Item, Scalar, Site

_SAME = 1e-3
"""Relative change of scores that counts as none."""


@probe(
    needs=("comparison",),
    writes=("probe.initial_loss", "probe.chance_loss", "probe.logit_std"),
    passes=0.5,
)
def loss_at_chance(case: Case) -> Iterator[Item]:
    """The data loss before training, beside that of a guess that looks at nothing."""

    def compared_of() -> tuple[Any, list[Compared]]:
        output = case.output()
        return output, case.compared(output)

    output, compared = without_graph(compared_of)
    known = _known(compared)
    if known is None:
        raise DoesNotApplyError(say("no loss whose value at chance is known was seen"))
    if without_graph(lambda: _follows_target(case, known.target)):
        raise DoesNotApplyError(say("what the loss is given is made with its target"))
    site = Site(case.name)
    chance, classes = _CHANCE[known.function](known)
    if known.options.get("reduction", "mean") == "none":
        raise DoesNotApplyError(say("the loss function returns no single number"))
    value = float(known.value.detach())
    if known.options.get("reduction", "mean") == "sum":
        value /= _terms(known)
    yield Scalar(STEP, "probe.initial_loss", value, site)
    yield Scalar(STEP, "probe.chance_loss", chance, site)
    yield Scalar(STEP, "probe.logit_std", _spread(known.prediction), site)
    yield observed(
        "loss-at-chance",
        site,
        function=known.function,
        classes=classes,
        weighted=known.options.get("weight") is not None,
        one_class=_is_one(known.target),
        others=len(compared) - 1,
        zero_output=all(not bool(t.any()) for _, t in named_tensors(output)),
    )


def _known(compared: list[Compared]) -> Compared | None:
    return next((one for one in compared if one.function in _CHANCE), None)


def _follows_target(case: Case, target: Tensor) -> bool:
    """Whether scores change with the targets that the model is given: a margin is set on them.

    Then they start above chance at any initialization, as those of ArcFace do.
    """
    given = [t for _, t in named_tensors([list(case.args), dict(case.kwargs)]) if _is(t, target)]
    if not given:
        return False
    others = replaced(case, {id(tensor): tensor.roll(1, 0) for tensor in given})
    found: list[Tensor] = []
    for one in (case, others):
        seeded(0)
        known = _known(one.compared(one.output()))
        if known is not None:
            found.append(known.prediction.detach())
    return len(found) > 1 and apart(found[0], found[1]) > _SAME


def _is(tensor: Tensor, target: Tensor) -> bool:
    """Whether a tensor that the model is given holds the targets."""
    same = tensor.numel() == target.numel() and tensor.device == target.device
    return same and torch.equal(tensor.reshape(-1).to(target.dtype), target.reshape(-1))


def _classes(compared: Compared) -> tuple[float, int]:
    """Of C classes without any knowledge: ln C."""
    prediction = compared.prediction
    classes = prediction.shape[1] if prediction.dim() > 1 else prediction.shape[0]
    return math.log(classes), classes


def _binary(_compared: Compared) -> tuple[float, int]:
    """Of yes or no without any knowledge: ln 2."""
    return math.log(2), 2


_CHANCE = {
    "cross_entropy": _classes,
    "nll_loss": _classes,
    "binary_cross_entropy": _binary,
    "binary_cross_entropy_with_logits": _binary,
}


def _terms(compared: Compared) -> int:
    """Over how many terms a loss sums."""
    if compared.function in ("cross_entropy", "nll_loss"):
        shape = compared.prediction.shape
        return max(1, compared.prediction.numel() // (shape[1] if len(shape) > 1 else shape[0]))
    return max(1, compared.prediction.numel())


def _is_one(target: Tensor) -> bool:
    """Whether all samples have the same target, which a guess may know: the positive of InfoNCE."""
    return bool(target.numel()) and bool((target == target.flatten()[0]).all())


def _spread(prediction: Tensor) -> float:
    values = prediction.detach().double()
    return float(values.std(correction=0)) if values.numel() else math.nan
