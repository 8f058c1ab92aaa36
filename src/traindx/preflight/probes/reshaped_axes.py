"""Probe: whether a view or reshape stands where axes should be exchanged.

A reshape keeps the order of the elements, and so can split an axis or merge neighbours. Where an
axis lies elsewhere among the others afterwards, it has its size but not its elements: only a
transpose moves an axis. That is read from the shapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor

from traindx.messages import say
from traindx.preflight.calls import Call, Calls
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.comparing import run, without_graph
from traindx.preflight.inside import Inner, Inside
from traindx.preflight.probe import STEP, observed, probe
from traindx.preflight.structures import tensors
from traindx.records import Item, Scalar, Site

_RESHAPES = {"view", "reshape", "view_as", "reshape_as", "_unsafe_view", "unflatten", "flatten"}
_SMOOTHER = 0.5
"""Of the differences between neighbours in a picture, what is left once its channels are sorted."""
_SIDE = 8
"""Pixels along a picture that is judged by its neighbours at least."""
_CHANNELS = range(2, 5)


class _Torn(NamedTuple):
    """A reshape that moves an axis.

    Attributes:
        inner: Where it was called; the model itself for its input.
        before: The shape given.
        after: The shape made.
        axis: Of the axis that was moved, its size.
        kind: `inside`, `split` where merged axes are taken apart in another order, `input` where
            the batch came so, `picture` where neighbours tell it, `loss` on the way to the loss.
    """

    inner: Inner
    before: tuple[int, ...]
    after: tuple[int, ...]
    axis: int
    kind: str


@probe(writes=("probe.moved_axes",), passes=0.4)
def reshaped_axes(case: Case) -> Iterator[Item]:
    """How many reshapes give an axis another place among the others."""
    ahead = _on_the_way_to_the_loss(case)
    case = replace(case, loss_found=None)  # the loss is not asked for
    case.model.eval()
    inside = Inside(case.model)
    found = _Watching(inside)
    with inside, found:
        run(case)
    itself = Inner("", type(case.model).__name__)
    torn = [*_of_inputs(case, itself), *found.torn]
    torn += [one._replace(inner=itself, kind="loss") for one in ahead.torn]
    if not torn and not found.reshapes and not ahead.reshapes:
        raise DoesNotApplyError(say("nothing is reshaped"))
    yield Scalar(STEP, "probe.moved_axes", len(torn), Site(case.name))
    for one in dict.fromkeys(torn):
        yield observed(
            "reshaped-axes",
            Site(case.name, one.inner.fqn),
            kind=one.inner.kind,
            before=[*one.before],
            after=[*one.after],
            axis=one.axis,
            by=one.kind,
        )


def _on_the_way_to_the_loss(case: Case) -> _Watching:
    """What is reshaped between the model's output and its loss."""

    def watched() -> _Watching:
        found = _Watching(Inside(case.model))
        if case.loss_found is not None:
            output = case.output()
            with found:
                case.loss_of(output)
        return found

    return without_graph(watched)


class _Watching(Calls):
    """Notes the reshapes of a pass, and the axes that are merged into the first one."""

    def __init__(self, inside: Inside) -> None:
        super().__init__()
        self.torn: list[_Torn] = []
        self.reshapes = 0
        self._inside = inside
        self._held: list[Tensor] = []  # so that no id is used twice
        self._rows: dict[int, tuple[int, ...]] = {}

    def answer(self, call: Call) -> Any:
        """Look at the shapes if it is a reshape."""
        result, given = call.run(), call.given()
        self._inherit(given, tensors(result))
        if call.name in _RESHAPES and given and isinstance(result, Tensor):
            self._reshaped(given[0], result)
        return result

    def _inherit(self, given: list[Tensor], made: list[Tensor]) -> None:
        """Rows stay what they are as long as there are as many."""
        for rows in (self._rows[id(t)] for t in given if id(t) in self._rows):
            for tensor in made:
                if tensor.dim() and tensor.shape[0] == prod(rows) and id(tensor) not in self._rows:
                    self._held.append(tensor)
                    self._rows[id(tensor)] = rows

    def _reshaped(self, given: Tensor, result: Tensor) -> None:
        self.reshapes += 1
        before, after = tuple(given.shape), tuple(result.shape)
        if axis := moved_axis(before, after):
            self.torn.append(_Torn(self._inside.innermost, before, after, axis, "inside"))
        old, new = next(_stretches(before, after), (list[int](), list[int]()))
        rows = self._rows.get(id(given), ())
        if len(old) > 1 and len(new) == 1 and result.shape[0] == new[0]:
            self._held.append(result)
            self._rows[id(result)] = tuple(old)
        elif sorted(rows) == sorted(new) and rows != tuple(new) and not _skews(new):
            torn = _Torn(self._inside.innermost, rows, tuple(new), new[0], "split")
            self.torn.append(torn)


# -- shapes ----------------------------------------------------------------------------------------


def moved_axis(before: tuple[int, ...], after: tuple[int, ...]) -> int:
    """The size of an axis that a reshape gives another place among the others; 0 if it keeps all.

    Shapes are compared where neither the borders of axes before nor after go through both. There,
    an axis of the same size before and after has moved if no such two have the same stride. That a
    row of n and n + 1 is read as n + 1 and n is how a matrix is skewed, and no mistake.
    """
    for old, new in _stretches(before, after):
        if len(old) < 2 or len(new) < 2 or (sorted(old) == sorted(new) and _skews(old)):
            continue
        strides = _strides(old), _strides(new)
        for size in sorted({*old} & {*new}, key=lambda n: (old.count(n), -n)):
            here = {stride for n, stride in zip(old, strides[0], strict=True) if n == size}
            there = {stride for n, stride in zip(new, strides[1], strict=True) if n == size}
            if here.isdisjoint(there):
                return size
    return 0


def _skews(shape: list[int]) -> bool:
    return len(shape) == 2 and abs(shape[0] - shape[1]) == 1


def _strides(shape: list[int]) -> list[int]:
    return [prod(shape[i + 1 :]) for i in range(len(shape))]


def _stretches(
    before: tuple[int, ...], after: tuple[int, ...]
) -> Iterator[tuple[list[int], list[int]]]:
    """The shortest stretches of both shapes that hold the same elements, axes of one left out."""
    old, new = ([n for n in shape if n != 1] for shape in (before, after))
    if prod(old) != prod(new) or not prod(old):
        return
    while old and new:
        left, right = [old.pop(0)], [new.pop(0)]
        while prod(left) != prod(right):
            (left if prod(left) < prod(right) else right).append(
                (old if prod(left) < prod(right) else new).pop(0)
            )
        yield left, right


# -- the batch as it comes -------------------------------------------------------------------------


def _of_inputs(case: Case, itself: Inner) -> Iterator[_Torn]:
    """Inputs that are a view of something with its axes elsewhere, and pictures that look so."""
    for tensor in tensors([list(case.args), dict(case.kwargs)]):
        base = tensor._base
        shape = tuple(tensor.shape)
        if base is not None and base.numel() == tensor.numel():
            plain = base.is_contiguous() and tensor.is_contiguous()
            axis = moved_axis(tuple(base.shape), shape) if plain else 0
            if axis:
                yield _Torn(itself, tuple(base.shape), shape, axis, "input")
                continue
        if _is_of_pictures(tensor) and _is_sorted_better(tensor):
            n, channels, height, width = shape
            yield _Torn(itself, (n, height, width, channels), shape, channels, "picture")


def _is_of_pictures(tensor: Tensor) -> bool:
    real = tensor.is_floating_point() or tensor.dtype is torch.uint8
    return (
        real
        and tensor.dim() == 4
        and tensor.shape[1] in _CHANNELS
        and min(tensor.shape[2:]) >= _SIDE
        and bool(torch.isfinite(tensor).all())
    )


def _is_sorted_better(pictures: Tensor) -> bool:
    """Whether neighbouring pixels are far more alike once channels are taken to come last."""
    n, channels, height, width = pictures.shape
    given = pictures.detach().double()
    apart = given.reshape(n, height, width, channels).permute(0, 3, 1, 2)
    return _roughness(apart) < _SMOOTHER * _roughness(given)


def _roughness(pictures: Tensor) -> float:
    """Mean square of the differences between neighbours."""
    return sum(float(pictures.diff(dim=axis).square().mean()) for axis in (2, 3))
