"""Probe: whether padding counts in the loss, and whether a class does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from traindx.messages import say
from traindx.preflight.case import Case, Compared, DoesNotApplyError
from traindx.preflight.probe import STEP, observed, probe
from traindx.preflight.sequences import Positions
from traindx.preflight.structures import named_tensors
from traindx.records import Item, Scalar, Site

_ROWS = 0.25
"""Of the samples, those that must end with padding."""
_PADDED = 0.1
"""Of all positions, those that must be padding."""
_ELSEWHERE = 0.01
"""Of the positions before, those that may hold what pads: more of it is a word like others."""
_FEWEST = 4
"""Samples of a class below which nothing is said of it."""
_SURE = 0.99
_CLASSES = ("cross_entropy", "nll_loss")


class _Gradient(NamedTuple):
    """Of the loss, at a tensor of the output."""

    output: Tensor
    value: Tensor


@probe(needs=("loss",), writes=("probe.padding_counted", "probe.classes_left_out"), passes=1.3)
def loss_mask(case: Case) -> Iterator[Item]:
    """Padding that has a gradient, and classes whose samples have none."""
    output = case.output()
    compared = case.compared(output)
    if not compared:
        raise DoesNotApplyError(say("no comparison of an output with a target was seen"))
    gradients = _gradients(case, output)
    site = Site(case.name)
    left_out = sorted(
        {c for one in compared for g in gradients for c in _left_out(one, g, case.batch_size)}
    )
    yield Scalar(STEP, "probe.classes_left_out", len(left_out), site)
    for label, samples in left_out:
        yield observed("loss-mask", site, what="class", label=label, samples=samples)
    targets = [one.target for one in compared]
    for _, values in named_tensors([list(case.args), dict(case.kwargs)]):
        for padding in _paddings(values, targets):
            counted = [share for g in gradients for share in _counted(padding, g)]
            if counted:
                yield Scalar(STEP, "probe.padding_counted", max(counted), site)
                share = float((~padding.counted).double().mean())
                yield observed("loss-mask", site, what="padding", share=share)
                return


def _gradients(case: Case, output: Any) -> list[_Gradient]:
    found = [t for _, t in named_tensors(output) if t.requires_grad and t.dim()]
    if not found:
        return []
    values = torch.autograd.grad(case.loss_of(output), found, allow_unused=True)
    pairs = zip(found, cast("tuple[Tensor | None, ...]", values), strict=True)
    return [_Gradient(output, value) for output, value in pairs if value is not None]


# -- classes ---------------------------------------------------------------------------------------


def _left_out(
    compared: Compared, gradient: _Gradient, size: int | None
) -> Iterator[tuple[int, int]]:
    """Classes of which no sample has a gradient, though every sample of all others has one.

    Of words, which are more than samples, one may be padding.
    """
    prediction, target = compared.prediction, compared.target
    if compared.function not in _CLASSES or target.dim() != 1 or target.is_floating_point():
        return
    if prediction.dim() != 2 or gradient.output.shape != prediction.shape or len(target) != size:
        return
    silent = (gradient.value == 0).all(1)
    for label in cast("list[int]", cast(Any, target).unique().tolist()):
        own = target == label
        samples = int(own.sum())
        if not 0 <= label < prediction.shape[1] or samples < _FEWEST:
            continue
        left_out = bool(silent[own].all()) and not bool(silent[~own].any())
        if left_out and not _is_sure(compared, own, label):
            yield label, samples


def _is_sure(compared: Compared, own: Tensor, label: int) -> bool:
    """Whether a class is told with such certainty that nothing is left to learn of it."""
    scores = compared.prediction.detach()
    chances = scores.softmax(1) if compared.function == "cross_entropy" else scores.exp()
    return float(chances[own, label].min()) > _SURE


# -- padding ---------------------------------------------------------------------------------------


def _paddings(values: Tensor, targets: list[Tensor]) -> Iterator[Positions]:
    """A sequence that is padded at its ends, with a target that is so, too."""
    if values.dim() != (3 if values.is_floating_point() else 2) or values.dtype is torch.bool:
        return
    if not values.numel() or values.is_complex():
        return
    for time in (1, 0):
        rows = values.detach() if time else values.detach().transpose(0, 1)
        padding = _ends(rows)
        if padding is None:
            continue
        where = padding if time else padding.transpose(0, 1)
        positions = Positions(values, time, ~where)
        if any(_is_padded(target, positions, padding) for target in targets):
            yield positions


def _ends(rows: Tensor) -> Tensor | None:
    """Where sequences hold nothing but the padding that follows them, (N, T); None if nowhere.

    What pads is one word, or nothing but zeros, at the end of samples of several lengths, and next
    to nowhere else.
    """
    flat = rows.flatten(2) if rows.dim() > 2 else rows[..., None]
    word = torch.zeros_like(flat[0, 0]) if rows.is_floating_point() else _commonest(flat[:, -1])
    same = (flat == word).all(-1)
    ends = same.flip(1).int().cummin(1).values.flip(1).bool()
    lengths = ends.sum(1)
    several = len(cast(Tensor, cast(Any, lengths).unique())) > 2
    enough = (
        float((lengths > 1).double().mean()) >= _ROWS and float(ends.double().mean()) >= _PADDED
    )
    before = same & ~ends
    rare = int(before.sum()) <= _ELSEWHERE * int((~ends).sum())
    return ends if several and enough and rare and bool((~ends).any()) else None


def _commonest(words: Tensor) -> Tensor:
    return words.mode(0).values


def _is_padded(target: Tensor, positions: Positions, padding: Tensor) -> bool:
    """Whether a target is constant wherever its sequence is padding; none that is the input."""
    values = positions.values
    if target.is_floating_point() and target.shape == values.shape:
        return False  # what an autoencoder is to give: borders of an image, say
    aligned = positions.aligned(target)
    if aligned is None:
        samples, steps = padding.shape
        if target.numel() != samples * (steps - 1) or not positions.time:
            return False
        aligned, padding = target.reshape(samples, steps - 1), padding[:, 1:]
    elif not positions.time:
        padding = padding.transpose(0, 1)
    held = aligned.detach()[padding.to(aligned.device)]
    return bool(held.numel()) and bool((held == held[:1]).all())


def _counted(positions: Positions, gradient: _Gradient) -> Iterator[float]:
    """The part of the padding that has a gradient; not of the first position, which ends the text.

    Nor of the last, which has none where the target is the next word.
    """
    aligned = positions.aligned(gradient.value)
    if aligned is None or aligned.shape[:2] != positions.counted.shape:
        return
    moving = (aligned != 0).flatten(2).any(2) if aligned.dim() > 2 else aligned != 0
    time = positions.time
    padding = ~positions.counted
    steps = positions.steps
    inner = padding.narrow(time, 1, steps - 2) & padding.narrow(time, 0, steps - 2)
    if steps > 2 and bool(inner.any()):
        yield float(moving.narrow(time, 1, steps - 2)[inner].double().mean())
