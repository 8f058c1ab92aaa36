"""Probe: whether the target stands in the input, as a feature or as the element that is read."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from traindx.messages import say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.comparing import apart, replaced, rounding, run, without_graph
from traindx.preflight.probe import STEP, observed, probe
from traindx.preflight.sequences import Positions, other
from traindx.preflight.structures import named_tensors
from traindx.records import Item, Scalar, Site

_SAME = 0.99
"""Of the targets that count, those that must be the input at their place."""
_MOVING = 0.2
"""Of the inputs, those that must differ from the next: else this one and the next are one."""
_SAMPLES = 16
"""Samples below which a feature may go with the target by chance."""
_MOST = 2_000_000
"""Elements of an input, beyond which its features are not looked at."""
_EXACT = 1e-6
"""How far a correlation may be from 1 by rounding of float32."""


@probe(needs=("loss",), writes=("probe.target_copies",), passes=1.2)
def target_in_input(case: Case) -> Iterator[Item]:
    """Features that are the target, and sequence models whose target is what they just read."""
    compared = without_graph(lambda: case.compared(case.output()))
    targets = [one.target for one in compared]  # after any shift that the loss makes itself
    if not targets:
        raise DoesNotApplyError(say("no comparison of an output with a target was seen"))
    inputs = [t for _, t in named_tensors([list(case.args), dict(case.kwargs)])]
    site, found = Site(case.name), 0
    for feature in sorted({f for x in inputs for y in targets for f in _features(x, y)}):
        found += 1
        yield observed("target-in-input", site, what="feature", feature=feature)
    sequence = next((s for x in inputs for y in targets for s in _read(x, y)), None)
    if sequence is not None:
        case.model.eval()
        if _looks_back(case, *sequence):
            found += 1
            yield observed("target-in-input", site, what="element", steps=sequence[0].shape[1])
    yield Scalar(STEP, "probe.target_copies", found, site)


def _features(x: Tensor, y: Tensor) -> Iterator[int]:
    """Columns of a table, or places of a window, that are the target but for scale and offset."""
    if x.layout is not torch.strided:
        return
    table = x.dim() in (2, 3) and x.is_floating_point() and x[:1].numel() > 1
    if not table or x.numel() > _MOST or x.shape[0] < _SAMPLES or y.numel() != x.shape[0] or y is x:
        return
    columns, values = (
        x.detach().double().flatten(1),
        y.detach().double().reshape(-1, 1).to(x.device),
    )
    columns, values = columns - columns.mean(0), values - values.mean()
    product = (columns.square().sum(0) * values.square().sum()).sqrt()
    alike = (columns * values).sum(0).abs() / product
    yield from (int(i) for i in (alike > 1 - _EXACT).nonzero().flatten())


def _read(x: Tensor, y: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """A sequence of integers that is its own target, and where that counts."""
    if x.dim() != 2 or x.is_floating_point() or y.is_floating_point() or x.dtype is torch.bool:
        return
    if y.numel() != x.numel() or min(x.shape) < 4:
        return
    told = y.detach().reshape(x.shape).to(x.device)
    counts = told >= 0
    number = int(counts.sum())
    if number and int(((told == x) & counts).sum()) >= _SAME * number:
        yield x, counts


def _looks_back(case: Case, values: Tensor, counted: Tensor) -> bool:
    """Whether outputs follow from their own and earlier positions, not from later ones, on an axis.

    A decoder that is given the answer, and shifts it within, does not see an element in its place.
    """
    for time in (1, 0):
        steps = values.shape[time]
        later, before = values.narrow(time, 1, steps - 1), values.narrow(time, 0, steps - 1)
        if float((later != before).double().mean()) < _MOVING:
            continue
        sequence = Positions(values, time, counted)
        end = torch.zeros_like(counted)
        end.narrow(time, steps // 2, steps - steps // 2).fill_(True)
        own = torch.zeros_like(counted)
        own.narrow(time, steps // 2, 1).fill_(True)
        earlier = _moved(case, sequence, ~end, end) and _moved(case, sequence, own, own)
        if earlier and not _moved(case, sequence, end, ~end):
            return True
    return False


def _moved(case: Case, sequence: Positions, changed: Tensor, told: Tensor) -> bool:
    """Whether outputs at some positions move as the input is changed at others."""
    values = sequence.values
    first = run(case)
    moved = run(replaced(case, {id(values): other(values, changed)}))
    if not any(sequence.aligned(t) is not None for _, t in named_tensors(first)):
        raise DoesNotApplyError(say("no output has the positions of the input"))
    return apart(first, moved, lambda t: sequence.only(t, told)) > rounding(first)
