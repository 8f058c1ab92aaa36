"""Probe: how far the output in training lies from that in evaluation."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.messages import say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.comparing import apart, run
from traindx.preflight.probe import STEP, probe
from traindx.records import Item, Scalar, Site


@probe(writes=("probe.mode_gap",), passes=0.6)
def mode_gap(case: Case) -> Iterator[Item]:
    """How far the output in training lies from that in evaluation, before training."""
    if not case.training:
        raise DoesNotApplyError(say("the model is trained in evaluation mode"))
    in_training = run(case)
    case.model.eval()
    yield Scalar(STEP, "probe.mode_gap", apart(run(case), in_training), Site(case.name))
