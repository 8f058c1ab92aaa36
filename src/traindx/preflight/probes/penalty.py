"""Probe: what larger parameters do to the loss by themselves, through penalties in it."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from traindx.messages import say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.comparing import without_graph
from traindx.preflight.probe import STEP, probe
from traindx.preflight.structures import mapped
from traindx.records import Item, Scalar, Site

_SCALE = 2.0
"""What the parameters are multiplied by."""
_ALIKE = 1e-5
"""Of the losses: how far two changes may be apart by rounding."""


@probe(needs=("loss",), writes=("probe.penalty_slope",), passes=1.0)
def penalty(case: Case) -> Iterator[Item]:
    """How the terms of the loss that depend on the parameters alone change as those are doubled."""
    output = without_graph(case.output)
    other = mapped(output, _halved)

    def losses() -> tuple[float, float]:
        return float(case.loss_of(output).detach()), float(case.loss_of(other).detach())

    try:
        before = without_graph(losses)
        with torch.no_grad():
            for _, param in case.trainable():
                param.mul_(_SCALE)
        after = without_graph(losses)
    except RuntimeError as error:  # it needs the graph of an output that came of other parameters
        raise DoesNotApplyError(say("the loss differentiates the model's output")) from error
    # Of the same output the data term is as before, and a penalty changes alike for any output.
    change, again = after[0] - before[0], after[1] - before[1]
    if change == 0 or abs(change - again) > _ALIKE * max(map(abs, (*before, *after))):
        raise DoesNotApplyError(say("no term of the loss is of the parameters alone"))
    yield Scalar(STEP, "probe.penalty_slope", change, Site(case.name))


def _halved(tensor: Tensor) -> Tensor:
    return tensor / 2 if tensor.is_floating_point() else tensor
