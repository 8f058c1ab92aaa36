"""Which axis of a batch counts its samples, where it may be time: told by changing some of them.

A sample's output must not move when only other samples are changed. Where the samples may lie along
axis 1, as recurrent layers and attention take them by default, both axes are tried in evaluation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.comparing import apart, rounding, run
from traindx.preflight.samples import loose_tensors, packs
from traindx.preflight.structures import named_tensors

_TIME_FIRST = (nn.RNNBase, nn.MultiheadAttention)


def located(case: Case) -> Case:
    """The case with the axis of its samples; the caller puts the model back."""
    plain = replace(case, loss_found=None)  # a loss need not follow
    if not _is_doubtful(case):
        return case
    case.model.eval()
    try:
        if _counts_samples(plain, 0) or not _counts_samples(replace(plain, axis=1), 1):
            return case
    except Exception:  # whatever it is, a probe will tell
        return case
    return replace(case, axis=1)


def _first(case: Case) -> Tensor | None:
    given = [t for t in loose_tensors([list(case.args), dict(case.kwargs)]) if t.dim() > 1]
    return given[0] if given else None


def _is_doubtful(case: Case) -> bool:
    """Whether axis 1 of the first argument may count the samples, and axis 0 not."""
    first = _first(case)
    if first is None or packs([case.args, case.kwargs]) or first.shape[0] == first.shape[1]:
        return False
    steps, samples = first.shape[:2]
    rows = {target.shape[0] for target in case.targets if target.dim()}
    if samples in rows and steps not in rows:
        return True
    layers = [cast(Any, m) for m in case.model.modules() if isinstance(m, _TIME_FIRST)]
    return any(not layer.batch_first for layer in layers)


def _counts_samples(case: Case, axis: int) -> bool:
    """Whether outputs of each half of an axis stay as they are when the other half is changed."""
    size = case.batch_size or 0
    if size < 2:
        return False
    half = size // 2
    first = run(case)
    tolerance = rounding(first)
    everything = torch.arange(size)
    for kept in (everything[:half], everything[half:]):
        index = everything.clone()
        others = torch.tensor([i for i in range(size) if i not in kept])
        index[others] = kept[torch.arange(len(others)).flip(0) % len(kept)]
        try:
            second = run(case.take(index))
        except DoesNotApplyError:
            return False
        was, now = (_rows(output, size, axis, kept) for output in (first, second))
        if not was or apart(was, now) > tolerance:
            return False
    return True


def _rows(output: object, size: int, axis: int, kept: Tensor) -> list[Tensor]:
    """What the first output with an axis of samples has of some of them."""
    for _, tensor in named_tensors(output):
        if tensor.dim() > axis and tensor.shape[axis] == size:
            return [tensor.index_select(axis, kept.to(tensor.device))]
        if tensor.dim() and tensor.shape[0] == size:
            return [tensor[kept.to(tensor.device)]]
    return []
