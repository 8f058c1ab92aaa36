"""How large every parameter is, and how far the optimizer moved it."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from traindx.capture.collectors import Collector, Places
from traindx.capture.models import TrackedModel
from traindx.capture.recorder import Recorder
from traindx.records import Point
from traindx.stats import sampled


class Updates(Collector):
    """Parameters and updates from a sample of entries, taken before and after the step.

    To read all weights, or keep a copy of them, would cost as much as all gradients.
    """

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._before: dict[tuple[TrackedModel, str], Tensor] = {}

    def before_step(self, places: Places) -> None:
        """Keep a sample of each parameter."""
        for model, fqn, param in places:
            place = (model, fqn, Point.PARAM)
            if self.recorder.measurable(place, param):
                self._before[model, fqn] = _sample(param).clone()
                self.recorder.exponents(place, param, replace=True)

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
        norms = _norms([pair[2] for pair in kept], [pair[3] for pair in kept])
        for (model, fqn, _, _), rms, ratio in zip(kept, *norms, strict=True):
            self.recorder.scalar(model, fqn, "param.rms", rms)
            self.recorder.scalar(model, fqn, "update.ratio", ratio)


def _norms(before: list[Tensor], now: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """RMS before, and the norm of the change over that before: infinite from zero.

    A handful of calls, however many tensors there are.
    """
    functions: Any = torch
    sizes = functions._foreach_norm(before)
    changes = functions._foreach_norm(functions._foreach_sub(now, before))
    roots = [math.sqrt(sample.numel()) for sample in before]
    return functions._foreach_div(sizes, roots), functions._foreach_div(changes, sizes)


def _sample(param: Tensor) -> Tensor:
    flat = param.detach().reshape(-1)
    sample = sampled(flat, param.shape)
    return sample.float() if sample.element_size() < 4 else sample
