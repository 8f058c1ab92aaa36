"""Probe: whether the future, or padding, reaches what a sequence model makes of a position."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from traindx.messages import say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.comparing import (
    Kept,
    Place,
    apart,
    parting,
    replaced,
    rounding,
    run,
    without_graph,
)
from traindx.preflight.probe import STEP, observed, probe
from traindx.preflight.sequences import Positions, other, padded, predicted
from traindx.preflight.structures import named_tensors
from traindx.records import Item, Scalar, Site


@probe(writes=("probe.future_leak", "probe.padding_leak"), passes=1.2)
def sequence_leaks(case: Case) -> Iterator[Item]:
    """Whether later inputs reach earlier outputs, and padding the real ones."""
    targets = _targets(case)
    case.model.eval()
    future, filled = predicted(case, targets), padded(case)
    if future is None and filled is None:
        raise DoesNotApplyError(
            say("no target is the next input, and no mask says what is padding")
        )
    if future is not None:
        half = future.steps // 2
        later = torch.zeros_like(future.counted)
        later.narrow(future.time, half, future.steps - half).fill_(True)
        yield from _looked(case, future, later, future.counted & ~later, "future")
    if filled is not None:
        sequence, padding = filled
        yield from _looked(case, sequence, padding, ~padding, "padding")


def _targets(case: Case) -> list[Tensor]:
    """What the loss compares with, as it comes and as known loss functions are given it."""
    if case.loss_found is None:
        return []
    compared = without_graph(lambda: case.compared(case.output()))
    return [*case.targets, *(one.target for one in compared)]


def _looked(
    case: Case, sequence: Positions, changed: Tensor, told: Tensor, what: str
) -> Iterator[Item]:
    """What moves at some positions when the input is changed at others."""
    fresh = replaced(case, {id(sequence.values): other(sequence.values, changed)})
    first = run(case)
    kept = _kept(sequence, told, pooled=what == "padding")
    if not any(kept(t) is not None for _, t in named_tensors(first) if t.is_floating_point()):
        raise DoesNotApplyError(say("no output has the positions of the input"))
    tolerance, leak = rounding(first), apart(first, run(fresh), kept)
    if leak > tolerance and apart(first, run(case), kept) > tolerance:
        raise DoesNotApplyError(say("the output differs from call to call"))
    yield Scalar(STEP, f"probe.{what}_leak", leak, Site(case.name))
    if leak > tolerance:
        found = parting(case, fresh, kept, tolerance)
        place = found or Place("", type(case.model).__name__)
        yield observed(
            "sequence-leaks",
            Site(case.name, place.fqn),
            what=what,
            kind=place.kind,
            leak=leak,
            tolerance=tolerance,
            steps=sequence.steps,
            changed_from=sequence.steps // 2,
        )


def _kept(sequence: Positions, where: Tensor, *, pooled: bool) -> Kept:
    """What a tensor holds at some positions; of one without positions, all if it is a sample's."""
    samples = sequence.values.shape[1 - sequence.time]

    def kept(tensor: Tensor) -> Tensor | None:
        own = sequence.only(tensor, where)
        if own is None and pooled and tensor.dim() == 2 and tensor.shape[0] == samples:
            return tensor
        return own

    return kept
