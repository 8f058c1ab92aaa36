"""What `ReduceLROnPlateau` is told, and whether it takes less of it for better."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

from torch import Tensor
from torch.optim.optimizer import Optimizer

from traindx.capture.optimizers import Optimizers
from traindx.records import Scalar, Site

_MOST = 4096
"""Calls that are kept until the next measured step."""


class _Call(NamedTuple):
    step: int
    optimizer: weakref.ref[Optimizer]
    metric: float
    more_is_better: bool


class Plateaus:
    """Calls of its `step` since they were last asked for."""

    def __init__(self) -> None:
        self._calls: dict[tuple[int, int], _Call] = {}

    def told(self, args: tuple[Any, ...], kwargs: dict[str, Any], step: int) -> None:
        """It was called with these arguments in a step; a number on a device is left there."""
        scheduler, *given = args
        metric = kwargs.get("metrics", given[0] if given else None)
        if isinstance(metric, Tensor):
            metric = float(metric) if metric.is_cpu and metric.numel() == 1 else None
        optimizer = getattr(scheduler, "optimizer", None)
        if not (isinstance(metric, float | int) and isinstance(optimizer, Optimizer)):
            return
        if len(self._calls) < _MOST:
            more_is_better = getattr(scheduler, "mode", "min") == "max"
            call = _Call(step, weakref.ref(optimizer), float(metric), more_is_better)
            self._calls[id(optimizer), step] = call

    def scalars(self, optimizers: Optimizers) -> Iterator[Scalar]:
        """What was told since the last measured step, in order; once a step."""
        calls, self._calls = self._calls, {}
        for step, ref, metric, more_is_better in calls.values():
            optimizer = ref()
            if optimizer is not None and optimizers.has_stepped(optimizer):
                site = Site("", optimizers.of(optimizer).name)
                yield Scalar(step, "plateau.metric", metric, site)
                yield Scalar(step, "plateau.more_is_better", float(more_is_better), site)
