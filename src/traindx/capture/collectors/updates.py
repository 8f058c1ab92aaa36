"""How large every parameter is, and how far the optimizer moved it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from traindx.capture.arrays import Array, on_host, sample, sample_on_host
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
        self._before: dict[_Named, Array | Tensor] = {}
        self._kept = _joined((), [np.empty(0)])

    def before_step(self, places: Places) -> None:
        """Keep a sample of each parameter."""
        names: list[_Named] = []
        samples: list[Array] = []
        for model, fqn, param in places:
            place = (model, fqn, Point.PARAM)
            if not self.recorder.measurable(place, param):
                continue
            entries = _entries(param)
            if _is_sparse(param) and _count(entries) < param.numel():
                self.recorder.skip(place, say("a sparse gradient moves rows that no sample holds"))
                continue
            if isinstance(entries, Tensor):
                self._before[model, fqn] = entries.clone()
            else:
                names.append((model, fqn))
                samples.append(entries)
            if self.recorder.wants_vectors:
                self.recorder.exponents(place, param, replace=True)
        if samples:
            self._kept = _joined(names, samples)
            self._before.update(self._kept.parts())

    def after_step(self, places: Places) -> None:
        """Compare each sample with what the step has made of it."""
        far: list[tuple[_Named, Tensor, Tensor]] = []
        near: list[tuple[_Named, Array, Array]] = []
        for model, fqn, param in places:
            name = model, fqn
            before = self._before.pop(name, None)
            if before is None:
                continue
            now = _entries(param)
            if isinstance(before, np.ndarray):
                if isinstance(now, np.ndarray) and before.size == now.size:
                    near.append((name, before, now))
            elif isinstance(now, Tensor) and before.shape == now.shape:
                far.append((name, before, now))
        if near:
            names = tuple([name for name, *_ in near])
            kept = self._kept
            if names != kept.names:  # other parameters than those that were kept last
                kept = _joined(names, [before for _, before, _ in near])
            self._note(*_norms(kept, [now for *_, now in near]), near)
        if far:
            self._note(*_norms_on_device([(before, now) for _, before, now in far]), far)

    def _note(
        self,
        rms: Sequence[float | Tensor],
        ratios: Sequence[float | Tensor],
        found: Sequence[tuple[_Named, object, object]],
    ) -> None:
        for (name, *_), size, ratio in zip(found, rms, ratios, strict=True):
            self.recorder.scalar(*name, "param.rms", size)
            self.recorder.scalar(*name, "update.ratio", ratio)


def _entries(param: Tensor) -> Array | Tensor:
    """Its sample, an array if it is on the CPU; hold no view of a parameter past the step."""
    return sample_on_host(param) if on_host(param) else sample(param)


def _count(entries: Array | Tensor) -> int:
    return entries.numel() if isinstance(entries, Tensor) else entries.size


def _is_sparse(param: Tensor) -> bool:
    """Whether a step moves but a few rows of it."""
    return param.grad is not None and param.grad.is_sparse


class _Joined(NamedTuple):
    """Samples of parameters, one after another, in float64; where each begins, and its size."""

    names: tuple[_Named, ...]
    values: Array
    starts: list[int]
    sizes: list[int]

    def parts(self) -> Iterator[tuple[_Named, Array]]:
        """Each of them, with its name."""
        for name, start, size in zip(self.names, self.starts, self.sizes, strict=True):
            yield name, self.values[start : start + size]


def _joined(names: Sequence[_Named], samples: Sequence[Array]) -> _Joined:
    """A copy of all of them."""
    sizes = [entries.size for entries in samples]
    starts = [0, *accumulate(sizes[:-1])]
    return _Joined(tuple(names), _flat(samples), starts, sizes)


def _flat(samples: Sequence[Array]) -> Array:
    """All elements of arrays of any shape, in float64."""
    return np.concatenate(samples, axis=None, dtype=np.float64)


@np.errstate(all="ignore")  # the user may have made errors of what NumPy ignores
def _norms(before: _Joined, now: Sequence[Array]) -> tuple[list[float], list[float]]:
    """RMS before, and the norm of the change over that before: infinite from zero."""
    changes = _flat(now)
    changes -= before.values
    changes *= changes
    moved = np.add.reduceat(changes, before.starts)
    np.multiply(before.values, before.values, out=changes)
    squares = np.add.reduceat(changes, before.starts)
    return np.sqrt(squares / before.sizes).tolist(), np.sqrt(moved / squares).tolist()


def _norms_on_device(pairs: list[tuple[Tensor, Tensor]]) -> tuple[list[Tensor], list[Tensor]]:
    """The same, in a handful of calls however many they are."""
    functions: Any = torch
    before, now = ([wide(pair[i]) for pair in pairs] for i in (0, 1))
    sizes = functions._foreach_norm(before)
    changes = functions._foreach_norm(functions._foreach_sub(now, before))
    roots = [math.sqrt(entries.numel()) for entries in before]
    return functions._foreach_div(sizes, roots), functions._foreach_div(changes, sizes)
