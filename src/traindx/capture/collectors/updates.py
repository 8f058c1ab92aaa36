"""How large every parameter is, and how far the optimizer moved it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from traindx.capture.arrays import Array, on_host, sample, sample_on_host
from traindx.capture.collectors import Collector, Places
from traindx.capture.models import TrackedModel
from traindx.capture.recorder import Recorder
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

    def before_step(self, places: Places) -> None:
        """Keep a sample of each parameter."""
        for model, fqn, param in places:
            place = (model, fqn, Point.PARAM)
            if self.recorder.measurable(place, param):
                entries = _entries(param)
                self._before[model, fqn] = (
                    entries.clone() if isinstance(entries, Tensor) else np.array(entries)
                )
                self.recorder.exponents(place, param, replace=True)

    def after_step(self, places: Places) -> None:
        """Compare each sample with what the step has made of it."""
        names: list[_Named] = []
        pairs: list[tuple[Tensor, Tensor]] = []
        with np.errstate(all="ignore"):  # the user may have made errors of what NumPy ignores
            for model, fqn, param in places:
                before = self._before.pop((model, fqn), None)
                if before is None or before.shape != (now := _entries(param)).shape:
                    continue
                if isinstance(before, Tensor) and isinstance(now, Tensor):
                    names.append((model, fqn))
                    pairs.append((before, now))
                elif not (isinstance(before, Tensor) or isinstance(now, Tensor)):
                    self._note(model, fqn, *_norms(before, now))
        for name, rms, ratio in zip(names, *_norms_on_device(pairs), strict=True):
            self._note(*name, rms, ratio)

    def _note(
        self, model: TrackedModel, fqn: str, rms: float | Tensor, ratio: float | Tensor
    ) -> None:
        self.recorder.scalar(model, fqn, "param.rms", rms)
        self.recorder.scalar(model, fqn, "update.ratio", ratio)


def _entries(param: Tensor) -> Array | Tensor:
    """Its sample, an array if it is on the CPU; hold no view of a parameter past the step."""
    return sample_on_host(param) if on_host(param) else sample(param)


def _norms(before: Array, now: Array) -> tuple[float, float]:
    """RMS before, and the norm of the change over that before: infinite from zero."""
    size, moved = _norm(before), _norm(now - before)
    if size:
        return size / math.sqrt(before.size), moved / size
    return 0.0, math.inf if moved else math.nan


def _norm(values: Array) -> float:
    square = float(values.dot(values))
    if not 1e-30 < square < math.inf:  # squares of float32 may vanish or overflow
        values = values.astype(np.float64)
        square = float(values.dot(values))
    return math.sqrt(square)


def _norms_on_device(pairs: list[tuple[Tensor, Tensor]]) -> tuple[list[Tensor], list[Tensor]]:
    """The same of several, in a handful of calls however many they are."""
    if not pairs:
        return [], []
    functions: Any = torch
    before, now = ([wide(pair[i]) for pair in pairs] for i in (0, 1))
    sizes = functions._foreach_norm(before)
    changes = functions._foreach_norm(functions._foreach_sub(now, before))
    roots = [math.sqrt(entries.numel()) for entries in before]
    return functions._foreach_div(sizes, roots), functions._foreach_div(changes, sizes)
