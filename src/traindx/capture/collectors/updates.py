"""How large every parameter is, and how far the optimizer moved it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from traindx.capture.arrays import Array, Samples, on_host, sample
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
        self._samples = Samples()
        self._kept = _joined([], [])
        self._before: dict[_Named, _Joined | Tensor] = {}

    def before_step(self, places: Places) -> None:
        """Keep a sample of each parameter."""
        names: list[_Named] = []
        samples: list[Array] = []
        for model, fqn, param in places:
            place, name = (model, fqn, Point.PARAM), (model, fqn)
            if not self.recorder.measurable(place, param):
                continue
            entries, grad = self._entries(name, param), param.grad
            if grad is not None and grad.is_sparse and _count(entries) < param.numel():
                self.recorder.skip(place, say("a sparse gradient moves rows that no sample holds"))
                continue
            if isinstance(entries, Tensor):
                self._before[name] = entries.clone()
            else:
                names.append(name)
                samples.append(entries)
            if self.recorder.wants_vectors:
                self.recorder.exponents(place, param, replace=True)
        if samples:
            self._keep(names, samples)

    def _keep(self, names: list[_Named], samples: list[Array]) -> None:
        kept = self._kept
        if kept.names == names and kept.sizes == [entries.size for entries in samples]:
            _flat(samples, kept.values)
        else:
            kept = self._kept = _joined(names, samples)
        self._before.update(dict.fromkeys(names, kept))

    def after_step(self, places: Places) -> None:
        """Compare each sample with what the step has made of it."""
        far: list[tuple[_Named, Tensor, Tensor]] = []
        near: list[tuple[_Named, _Joined, Array]] = []
        for model, fqn, param in places:
            name = model, fqn
            before = self._before.pop(name, None)
            if before is None:
                continue
            now = self._entries(name, param)
            if isinstance(before, _Joined):
                if isinstance(now, np.ndarray):
                    near.append((name, before, now))
            elif isinstance(now, Tensor) and before.shape == now.shape:
                far.append((name, before, now))
        if near:
            kept, samples = _alike(near)
            self._note(*_norms(kept, samples), kept.names)
        if far:
            pairs = [(before, now) for _, before, now in far]
            self._note(*_norms_on_device(pairs), [name for name, *_ in far])

    def _entries(self, name: _Named, param: Tensor) -> Array | Tensor:
        """Its sample, an array if it is on the CPU; hold no view of a parameter past the step."""
        return self._samples.of(name, param) if on_host(param) else sample(param)

    def _note(
        self,
        rms: Sequence[float | Tensor],
        ratios: Sequence[float | Tensor],
        names: Sequence[_Named],
    ) -> None:
        for (model, fqn), size, ratio in zip(names, rms, ratios, strict=True):
            self.recorder.scalar(model, fqn, "param.rms", size)
            self.recorder.scalar(model, fqn, "update.ratio", ratio)


def _count(entries: Array | Tensor) -> int:
    return entries.numel() if isinstance(entries, Tensor) else entries.size


class _Joined(NamedTuple):
    """Samples of parameters, one after another, in float64; where each begins, and its size.

    The array of as many `changes` is there to compute in.
    """

    names: list[_Named]
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
    return _Joined(names, sizes, starts, counts, values, changes)


def _alike(found: list[tuple[_Named, _Joined, Array]]) -> tuple[_Joined, list[Array]]:
    """The samples before and after the step of all parameters that are as large as before."""
    kept, now = found[0][1], [entries for *_, entries in found]
    names = [name for name, *_ in found]
    if kept.names == names and kept.sizes == [entries.size for entries in now]:
        return kept, now
    parts = [(name, kept.part(name), entries) for name, kept, entries in found]
    alike = [one for one in parts if one[1].size == one[2].size]
    joined = _joined([name for name, *_ in alike], [before for _, before, _ in alike])
    return joined, [entries for *_, entries in alike]


def _flat(samples: Sequence[Array], into: Array) -> None:
    """Write all elements of arrays of any shape, in float64."""
    np.concatenate(samples, axis=None, out=into)


@np.errstate(all="ignore")  # the user may have made errors of what NumPy ignores
def _norms(before: _Joined, now: Sequence[Array]) -> tuple[list[float], list[float]]:
    """RMS before, and the norm of the change over that before: infinite from zero."""
    if not now:
        return [], []
    changes = before.changes
    _flat(now, changes)
    changes -= before.values
    changes *= changes
    moved = np.add.reduceat(changes, before.starts)
    np.multiply(before.values, before.values, out=changes)
    squares = np.add.reduceat(changes, before.starts)
    return np.sqrt(squares / before.counts).tolist(), np.sqrt(moved / squares).tolist()


def _norms_on_device(pairs: list[tuple[Tensor, Tensor]]) -> tuple[list[Tensor], list[Tensor]]:
    """The same, in a handful of calls however many they are."""
    functions: Any = torch
    before, now = ([wide(pair[i]) for pair in pairs] for i in (0, 1))
    sizes = functions._foreach_norm(before)
    changes = functions._foreach_norm(functions._foreach_sub(now, before))
    roots = [math.sqrt(entries.numel()) for entries in before]
    return functions._foreach_div(sizes, roots), functions._foreach_div(changes, sizes)
