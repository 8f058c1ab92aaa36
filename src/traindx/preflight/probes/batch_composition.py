"""Probe: whether what a model makes of a sample depends on the other samples of its batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm  # pyright: ignore[reportPrivateUsage]

from traindx.capture.modes import STATISTICS
from traindx.facts import Json
from traindx.messages import say
from traindx.nested import first_tensor
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.comparing import Kept, Place, apart, parting, rounding, run, written
from traindx.preflight.probe import STEP, observed, probe
from traindx.preflight.structures import named_tensors
from traindx.records import Item, Scalar, Site

_FORWARD = 0.35
"""What a forward pass costs, of one forward and backward."""
_LOOKED_AT = 16
"""Samples whose outputs are looked at in every module."""


@probe(
    needs=("batch",),
    writes=("probe.batch_mixing", "probe.batch_mixing_training"),
    passes=lambda case: (9 if _batch_norms(case.model) else 6) * _FORWARD,
)
def batch_composition(case: Case) -> Iterator[Item]:
    """Whether a sample's output depends on its neighbours, in evaluation and in training."""
    size = case.batch_size or 0
    if size < 2:
        raise DoesNotApplyError(say("the batch has a single sample"))
    sure = _rows_are_samples(case)
    case = replace(case, loss_found=None)  # of outputs only: a loss need not follow
    # Either half is kept: what goes from sample to sample goes in one direction.
    pairs = [_Pair(case, _others(case, size, last), _kept(size, last), sure) for last in (0, 1)]
    modes = [(module, module.training) for module in case.model.modules()]
    case.model.eval()
    yield from _looked(pairs, "probe.batch_mixing", "evaluation")
    for module, training in modes:
        module.training = training
    if case.training:
        yield from _looked(pairs, "probe.batch_mixing_training", "training")


class _Pair(NamedTuple):
    """A batch, the same with other neighbours, and which samples are in both."""

    case: Case
    among: Case
    kept: Kept
    sure: bool

    def mixing(self) -> tuple[float, float]:
        """How far the kept samples' outputs move, and what of it may be rounding."""
        first = run(self.case)
        rows = _rows(first, first, self.case)
        if not rows:
            raise DoesNotApplyError(say("no output has a row for each sample"))
        moved = apart(rows, _rows(first, run(self.among), self.case), self.kept)
        tolerance = rounding(first)
        if moved > tolerance:
            again = apart(rows, _rows(first, run(self.case), self.case), self.kept)
            if again > tolerance:
                raise DoesNotApplyError(say("the output differs from call to call"))
        return moved, tolerance


def _others(case: Case, size: int, last: int) -> Case:
    """The same with half of its samples, the first or the last, replaced by the others, turned."""
    half = size // 2
    index = torch.arange(size)
    index[half:] = torch.arange(size - half).flip(0) % half
    return case.take((size - 1 - index).flip(0) if last else index)


def _looked(pairs: Sequence[_Pair], quantity: str, mode: str) -> Iterator[Item]:
    found = [(pair, *pair.mixing()) for pair in pairs]
    pair, mixing, tolerance = max(found, key=lambda one: one[1])
    name = pair.case.name
    if mixing > tolerance and not pair.sure:
        raise DoesNotApplyError(
            say("whether axis 0 of the batch counts samples or steps of time is not known")
        )
    yield Scalar(STEP, quantity, mixing, Site(name))
    if mixing <= tolerance:
        return
    norms = [norm for norm in _batch_norms(pair.case.model) if norm.training]
    for norm in norms:
        norm.eval()  # the batch's statistics are meant to mix; does anything else?
    if norms:
        pair, mixing = max(((one, one.mixing()[0]) for one in pairs), key=lambda one: one[1])
    if mixing > tolerance:
        place = parting(pair.case, pair.among, pair.kept, tolerance)
        place = place or Place("", type(pair.case.model).__name__)
        statistics: list[Json] = [n for n in written(pair.case) if _is_statistic(n, place.fqn)]
        yield observed(
            "batch-composition",
            Site(name, place.fqn),
            mode=mode,
            kind=place.kind,
            mixing=mixing,
            tolerance=tolerance,
            **({"written": statistics} if statistics else {}),
        )


def _is_statistic(buffer: str, fqn: str) -> bool:
    """Whether a buffer is a running statistic of a module, by its name."""
    holder, _, name = buffer.rpartition(".")
    return holder == fqn and name.startswith(STATISTICS)


def _batch_norms(model: nn.Module) -> list[nn.Module]:
    """Those that have statistics of their own to use instead."""
    return [
        module
        for module in model.modules()
        if isinstance(module, _BatchNorm) and module.running_mean is not None
    ]


# -- what is a sample's ----------------------------------------------------------------------------


def _kept(size: int, last: int) -> Kept:
    """The first samples of a tensor, or the last, of which few are enough."""
    few = min(size // 2, _LOOKED_AT)

    def some(rows: int) -> slice:
        """Of an axis, where each sample has so many rows."""
        return slice(-few * rows, None) if last else slice(few * rows)

    def kept(tensor: Tensor) -> Tensor | None:
        if not tensor.dim():
            return None
        if tensor.shape[0] == size:
            return tensor[some(1)]
        if tensor.dim() > 1 and tensor.shape[1] == size:
            return tensor[:, some(1)]
        if tensor.shape[0] and tensor.shape[0] % size == 0:  # positions of samples, flattened
            return tensor[some(tensor.shape[0] // size)]
        return None

    return kept


def _is_of_samples(tensor: Tensor, case: Case) -> bool:
    """Whether it has a row for each sample, and no column for each: that would compare them."""
    size = case.batch_size
    if not tensor.dim() or not tensor.is_floating_point():
        return False
    if case.axis and tensor.dim() > 1 and tensor.shape[1] == size:
        return True
    return tensor.shape[0] == size and not (tensor.dim() == 2 and tensor.shape[1] == size)


def _rows(first: object, output: object, case: Case) -> list[Tensor]:
    """The tensors of an output that stand where the first one has some of samples."""
    pairs = zip(named_tensors(first), named_tensors(output), strict=False)
    return [b for (_, a), (_, b) in pairs if _is_of_samples(a, case)]


def _rows_are_samples(case: Case) -> bool:
    """Whether what counts samples surely does: not time, and not the nodes of one graph."""
    if case.axis:
        return True
    given = [t for _, t in named_tensors([list(case.args), dict(case.kwargs)]) if t.dim()]
    first, size = first_tensor(given), case.batch_size
    held = [*case.model.buffers(), *case.model.parameters()]
    if first is None or any(t.shape[0] != size or _pairs(t, size) for t in given):
        return False
    if any(_pairs(t, size) or _is_of_edges(t) for t in held):
        return False
    if getattr(case.loaders.training, "batch_size", None) == size or "input_ids" in case.kwargs:
        return True
    if any(target.dim() == 1 and target.shape[0] == size for target in case.targets):
        return True
    # With nothing to tell: images, and rows of features, have no axis of time before them.
    return first.dim() >= 4 or (first.dim() == 2 and first.is_floating_point())


def _pairs(tensor: Tensor, size: int | None) -> bool:
    """Whether it says something of every pair of rows, as a graph's adjacency does."""
    square = tensor.dim() == 2 and tuple(tensor.shape) == (size, size)
    return square and not isinstance(tensor, nn.Parameter)


def _is_of_edges(tensor: Tensor) -> bool:
    """Whether it may list the edges of a graph."""
    integers = not tensor.is_floating_point() and not tensor.is_complex()
    return tensor.dim() == 2 and tensor.shape[0] == 2 and integers
