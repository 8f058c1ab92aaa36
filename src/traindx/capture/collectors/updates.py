"""How large every parameter is, and how far the optimizer moved it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from traindx.capture.arrays import Array, Arrays, Views, numbers, on_host, sample, sample_on_host
from traindx.capture.collectors import Collector, Places
from traindx.capture.models import TrackedModel
from traindx.capture.recorder import Recorder
from traindx.messages import say
from traindx.records import Point
from traindx.stats import unmeasurable
from traindx.stats.memory import wide
from traindx.stats.samples import doubles

_Named = tuple[TrackedModel, str]


class Updates(Collector):
    """Parameters and updates from a sample of entries, taken before and after the step.

    To read all weights, or keep a copy of them, would cost as much as all gradients.
    """

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._samples = Views(_sample)
        self._kept = _joined([], [])
        self._before: dict[_Named, _Joined | Tensor] = {}

    def before_step(self, places: Places) -> None:
        """Keep a sample of each parameter."""
        names: list[_Named] = []
        params: list[Tensor] = []
        vectors = self.recorder.wants_vectors
        for model, fqn, param in places:
            name, grad = (model, fqn), param.grad
            reason = unmeasurable(param)
            if not reason and grad is not None and grad.is_sparse and not _has_all(param):
                reason = say("a sparse gradient moves rows that no sample holds")
            if reason:
                self.recorder.skip((model, fqn, Point.PARAM), reason)
                continue
            if on_host(param):
                names.append(name)
                params.append(param)
            else:
                self._before[name] = sample(param).clone()
            if vectors:
                self.recorder.exponents((model, fqn, Point.PARAM), param, replace=True)
        if names:
            model, fqn = names[0]
            self._keep(names, self._samples.of((model.name, fqn), params))

    def _keep(self, names: list[_Named], samples: Arrays) -> None:
        kept = self._kept
        if kept.names != names or kept.sizes != [entries.size for entries in samples.each]:
            kept = self._kept = _joined(names, samples.each)
        else:
            samples.copy_to(kept.room)
        self._before.update(dict.fromkeys(names, kept))

    def after_step(self, places: Places) -> None:
        """Compare each sample with what the step has made of it."""
        far: list[tuple[_Named, Tensor, Tensor]] = []
        near: list[tuple[_Named, _Joined]] = []
        params: list[Tensor] = []
        for model, fqn, param in places:
            name = model, fqn
            before = self._before.pop(name, None)
            if isinstance(before, _Joined) and on_host(param):
                near.append((name, before))
                params.append(param)
            elif isinstance(before, Tensor) and (now := _now(before, param)) is not None:
                far.append((name, before, now))
            elif before is not None:
                self._lose(name)
        if near:
            model, fqn = near[0][0]
            kept, samples = _alike(near, self._samples.of((model.name, fqn), params))
            self.recorder.scalars(zip(kept.told, _norms(kept, samples), strict=True))
            if len(kept.names) < len(near):
                for name in {name for name, _ in near} - {*kept.names}:
                    self._lose(name)
        if far:
            pairs = [(before, now) for _, before, now in far]
            told = _told([name for name, *_ in far])
            self.recorder.scalars(zip(told, _norms_on_device(pairs), strict=True))

    def _lose(self, name: _Named) -> None:
        """There is no comparing a parameter with what it was."""
        reason = say("the step has put something else in its place, or nothing")
        self.recorder.skip((*name, Point.PARAM), reason)


def _sample(param: Tensor) -> Array:
    """A sample of a parameter on the CPU; an empty one where the step has left nothing to read."""
    return np.empty(0) if unmeasurable(param) else sample_on_host(param)


def _now(before: Tensor, param: Tensor) -> Tensor | None:
    """What a sample on a device has become; None if nothing can be compared with it."""
    if unmeasurable(param) or param.device != before.device:
        return None
    now = sample(param)
    return now if now.shape == before.shape else None


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

    The array of all `values` is a view of the `room` they are in.
    """

    names: list[_Named]
    told: list[tuple[TrackedModel, str, str]]
    sizes: list[int]
    starts: Array
    counts: Array
    room: Any
    values: Array

    def part(self, name: _Named) -> Array:
        """One of them."""
        i = self.names.index(name)
        return self.values[self.starts[i] :][: self.sizes[i]]


def _joined(names: list[_Named], samples: Sequence[Array]) -> _Joined:
    """A copy of all of them."""
    sizes = [entries.size for entries in samples]
    starts, counts = np.cumsum([0, *sizes])[:-1], np.array(sizes)
    room = doubles(sum(sizes))()
    values = np.frombuffer(room)
    if samples:
        _flat(samples, values)
    return _Joined(names, _told(names), sizes, starts, counts, room, values)


def _alike(found: list[tuple[_Named, _Joined]], now: Arrays) -> tuple[_Joined, Arrays]:
    """The samples before and after the step of all parameters that are as large as before."""
    kept, names = found[0][1], [name for name, _ in found]
    if kept.names == names and kept.sizes == [entries.size for entries in now.each]:
        return kept, now
    parts = [
        (name, kept.part(name), entries)
        for (name, kept), entries in zip(found, now.each, strict=True)
    ]
    alike = [one for one in parts if one[1].size == one[2].size]
    joined = _joined([name for name, *_ in alike], [before for _, before, _ in alike])
    return joined, Arrays([entries for *_, entries in alike], None)


def _flat(samples: Sequence[Array], into: Array) -> None:
    """Write all elements of arrays of any shape, in float64."""
    np.concatenate(samples, axis=None, out=into)


def _norms(before: _Joined, now: Arrays) -> list[float]:
    """Of each: RMS before, and the norm of the change over that before, infinite from zero.

    What was before may be overwritten by what is now: nobody asks for it again.
    """
    if now.samples is not None:
        return now.samples.moved(before.room)
    return _norms_in_numpy(before, now.each) if now.each else []


@np.errstate(all="ignore")  # the user may have made errors of what NumPy ignores
def _norms_in_numpy(before: _Joined, now: Sequence[Array]) -> list[float]:
    changes = np.empty_like(before.values)
    _flat(now, changes)
    changes -= before.values
    changes *= changes
    moved = np.add.reduceat(changes, before.starts)
    np.multiply(before.values, before.values, out=changes)
    squares = np.add.reduceat(changes, before.starts)
    both = np.stack([squares / before.counts, moved / squares], axis=1)
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
