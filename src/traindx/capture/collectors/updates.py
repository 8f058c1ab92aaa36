"""How large every parameter is, and how far the optimizer moved it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from traindx.capture.arrays import Array, Views, numbers, on_host, sample, sample_on_host
from traindx.capture.collectors import Collector, Places
from traindx.capture.models import TrackedModel
from traindx.capture.recorder import Recorder
from traindx.messages import say
from traindx.records import Point
from traindx.stats.memory import wide

_Named = tuple[TrackedModel, str]


class Updates(Collector):
    """Parameters and updates from a sample of entries, taken before and after the step.

    To read all weights, or keep a copy of them, would cost as much as all gradients.
    """

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._samples = Views()
        self._kept = _joined([], [])
        self._before: dict[_Named, _Joined | Tensor] = {}

    def before_step(self, places: Places) -> None:
        """Keep a sample of each parameter."""
        names: list[_Named] = []
        params: list[Tensor] = []
        for model, fqn, param in places:
            place, name = (model, fqn, Point.PARAM), (model, fqn)
            if not self.recorder.measurable(place, param):
                continue
            grad = param.grad
            if grad is not None and grad.is_sparse and not _has_all(param):
                self.recorder.skip(place, say("a sparse gradient moves rows that no sample holds"))
                continue
            if on_host(param):
                names.append(name)
                params.append(param)
            else:
                self._before[name] = sample(param).clone()
            if self.recorder.wants_vectors:
                self.recorder.exponents(place, param, replace=True)
        if names:
            self._keep(names, self._samples.of(names[0], params))

    def _keep(self, names: list[_Named], samples: Sequence[Array]) -> None:
        kept = self._kept
        if kept.names == names and kept.sizes == [entries.size for entries in samples]:
            _flat(samples, kept.values)
        else:
            kept = self._kept = _joined(names, samples)
        self._before.update(dict.fromkeys(names, kept))

    def after_step(self, places: Places) -> None:
        """Compare each sample with what the step has made of it."""
        far: list[tuple[_Named, Tensor, Tensor]] = []
        near: list[tuple[_Named, _Joined]] = []
        params: list[Tensor] = []
        for model, fqn, param in places:
            name = model, fqn
            before = self._before.pop(name, None)
            if isinstance(before, _Joined):
                if on_host(param):
                    near.append((name, before))
                    params.append(param)
            elif before is not None and not on_host(param):
                now = sample(param)
                if before.shape == now.shape:
                    far.append((name, before, now))
        if near:
            kept, samples = _alike(near, self._samples.of(near[0][0], params))
            self.recorder.scalars(zip(kept.told, _norms(kept, samples), strict=True))
        if far:
            pairs = [(before, now) for _, before, now in far]
            told = _told([name for name, *_ in far])
            self.recorder.scalars(zip(told, _norms_on_device(pairs), strict=True))


def _told(names: Sequence[_Named]) -> list[tuple[TrackedModel, str, str]]:
    """What is told of parameters: of each how large it is, and how far it moved."""
    quantities = "param.rms", "update.ratio"
    return [(model, fqn, quantity) for model, fqn in names for quantity in quantities]


def _has_all(param: Tensor) -> bool:
    """Whether a parameter's sample is all of it."""
    count = sample_on_host(param).size if on_host(param) else sample(param).numel()
    return count == param.numel()


class _Joined(NamedTuple):
    """Samples of parameters, one after another, in float64; where each begins, and its size.

    The array of as many `changes` is there to compute in.
    """

    names: list[_Named]
    told: list[tuple[TrackedModel, str, str]]
    sizes: list[int]
    starts: Array
    counts: Array
    values: Array
    changes: Array

    def part(self, name: _Named) -> Array:
        """One of them."""
        i = self.names.index(name)
        return self.values[self.starts[i] :][: self.sizes[i]]


def _joined(names: list[_Named], samples: Sequence[Array]) -> _Joined:
    """A copy of all of them."""
    sizes = [entries.size for entries in samples]
    starts, counts = np.cumsum([0, *sizes])[:-1], np.array(sizes)
    values, changes = np.empty(sum(sizes)), np.empty(sum(sizes))
    if samples:
        _flat(samples, values)
    return _Joined(names, _told(names), sizes, starts, counts, values, changes)


def _alike(
    found: list[tuple[_Named, _Joined]], now: Sequence[Array]
) -> tuple[_Joined, Sequence[Array]]:
    """The samples before and after the step of all parameters that are as large as before."""
    kept, names = found[0][1], [name for name, _ in found]
    if kept.names == names and kept.sizes == [entries.size for entries in now]:
        return kept, now
    parts = [
        (name, kept.part(name), entries) for (name, kept), entries in zip(found, now, strict=True)
    ]
    alike = [one for one in parts if one[1].size == one[2].size]
    joined = _joined([name for name, *_ in alike], [before for _, before, _ in alike])
    return joined, [entries for *_, entries in alike]


def _flat(samples: Sequence[Array], into: Array) -> None:
    """Write all elements of arrays of any shape, in float64."""
    np.concatenate(samples, axis=None, out=into)


@np.errstate(all="ignore")  # the user may have made errors of what NumPy ignores
def _norms(before: _Joined, now: Sequence[Array]) -> list[float]:
    """Of each: RMS before, and the norm of the change over that before, infinite from zero."""
    if not now:
        return []
    changes = before.changes
    _flat(now, changes)
    changes -= before.values
    changes *= changes
    moved = np.add.reduceat(changes, before.starts)
    np.multiply(before.values, before.values, out=changes)
    squares = np.add.reduceat(changes, before.starts)
    both = np.empty((len(now), 2))
    np.divide(squares, before.counts, out=both[:, 0])
    np.divide(moved, squares, out=both[:, 1])
    return numbers(np.sqrt(both).ravel())


def _norms_on_device(pairs: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
    """The same, in a handful of calls however many they are."""
    functions: Any = torch
    before, now = ([wide(pair[i]) for pair in pairs] for i in (0, 1))
    sizes = functions._foreach_norm(before)
    changes = functions._foreach_norm(functions._foreach_sub(now, before))
    roots = [math.sqrt(entries.numel()) for entries in before]
    rms, ratios = functions._foreach_div(sizes, roots), functions._foreach_div(changes, sizes)
    return [number for both in zip(rms, ratios, strict=True) for number in both]
