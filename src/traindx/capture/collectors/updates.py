"""Every parameter, and how far the optimizer moved it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from traindx.capture.collectors import Collector, Places
from traindx.capture.models import TrackedModel
from traindx.capture.recorder import Recorder
from traindx.records import Point
from traindx.stats import sampled


class Updates(Collector):
    """Updates from a sample of entries before and after the step, never a copy of the weights."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._before: dict[tuple[TrackedModel, str], Tensor] = {}

    def before_step(self, places: Places) -> None:
        """Measure the parameters and keep a sample of each."""
        for model, fqn, param in places:
            if self.recorder.tensor((model, fqn, Point.PARAM), param, replace=True):
                self._before[model, fqn] = _sample(param).clone()

    def after_step(self, places: Places) -> None:
        """Compare each sample with what the step has made of it, all in one go."""
        samples = [
            (model, fqn, before, _sample(param))
            for model, fqn, param in places
            if (before := self._before.pop((model, fqn), None)) is not None
        ]
        kept = [pair for pair in samples if pair[2].shape == pair[3].shape]
        if not kept:
            return
        before, now = [pair[2] for pair in kept], [pair[3] for pair in kept]
        changes, sizes = _norms_of_changes(before, now)
        for (model, fqn, sample, _), change, size in zip(kept, changes, sizes, strict=True):
            self.recorder.scalar(model, fqn, "update.rms", change / sample.numel() ** 0.5)
            self.recorder.scalar(model, fqn, "update.ratio", change / size)  # infinite from zero


def _norms_of_changes(before: list[Tensor], now: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """Norms of `now - before` and of `before`: three calls however many tensors there are."""
    functions: Any = torch
    changes = functions._foreach_norm(functions._foreach_sub(now, before))
    return changes, functions._foreach_norm(before)


def _sample(param: Tensor) -> Tensor:
    flat = param.detach().reshape(-1)
    sample = sampled(flat, param.shape)
    return sample.float() if sample.element_size() < 4 else sample
