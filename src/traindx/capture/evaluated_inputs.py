"""What a model is given in evaluation beside what it was trained on, feature by feature.

A feature is one entry of a sample: a pixel, a column of a table. Of each model up to 256 of them
are summed up over up to 64 samples of a pass, on their device, about the mean of the first batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from traindx.capture.models import TrackedModel
from traindx.capture.transfer import Lists, Numbers, Unread
from traindx.facts import Json
from traindx.nested import tensors
from traindx.records import Event, EventKind, Item, Site
from traindx.stats import unmeasurable

_FEATURES, _SAMPLES = 256, 64
_DENSE = 4
"""Evaluations at the start that are all compared; then those whose number is 2^k."""
_STILL = 1e-3
"""Of the median deviation: features that vary less are taken for constant."""

Floats = NDArray[np.float64]


@dataclass
class _Sums:
    """Of each feature the sum and the sum of squares about a center, on the device."""

    first: Tensor
    second: Tensor
    count: int = 0

    def add(self, rows: Tensor) -> None:
        # Not in place: what is made in inference mode must not be written to outside of it.
        self.first = self.first + rows.sum(0)
        self.second = self.second + rows.square().sum(0)
        self.count += len(rows)


@dataclass
class _Inputs:
    """Of one model: the shape of a sample, the center, and the sums of both kinds of passes."""

    sample: tuple[int, ...]
    center: Tensor
    trained: _Sums
    evaluated: _Sums | None = None
    passes: int = 0
    comparisons: int = 0


class EvaluatedInputs:
    """The first floating-point tensor that each model is given, in training and in evaluation."""

    def __init__(self) -> None:
        self._of = WeakKeyDictionary[TrackedModel, _Inputs]()
        self._any_evaluated = False

    def trained(self, model: TrackedModel, inputs: Iterable[object]) -> None:
        """A model is called in a measured training step.

        What another model in training has made is no data: its scale is that model's to change.
        """
        tensor = _given(inputs)
        if tensor is None or tensor.requires_grad:
            return
        rows = _rows(tensor)
        known = self._of.get(model)
        sample = tuple(tensor.shape[1:])
        if known is None or known.sample != sample or known.center.device != rows.device:
            center = rows.mean(0)
            known = _Inputs(sample, center, _nothing(center))
            self._of[model] = known
        known.trained.add(rows - known.center)

    def evaluated(self, model: TrackedModel, inputs: Iterable[object]) -> None:
        """A model is called without gradient; of many passes those whose number is 2^k count."""
        known = self._of.get(model)
        tensor = None if known is None else _given(inputs)
        if known is None or tensor is None or tuple(tensor.shape[1:]) != known.sample:
            return
        self._any_evaluated = True
        known.passes += 1
        if known.passes & (known.passes - 1) or tensor.device != known.center.device:
            return
        if known.evaluated is None:
            known.evaluated = _nothing(known.center)
        known.evaluated.add(_rows(tensor) - known.center)

    def take(self, step: int) -> list[Unread]:
        """The comparisons after the evaluations since the last time."""
        if not self._any_evaluated:  # as after nearly every step
            return []
        self._any_evaluated, found = False, list[Unread]()
        for model, known in self._of.items():
            evaluated, known.evaluated, known.passes = known.evaluated, None, 0
            if evaluated is None or not model.confirmed:
                continue
            known.comparisons += 1
            if known.comparisons <= _DENSE or not known.comparisons & (known.comparisons - 1):
                found.append(_compared(model, known, evaluated, step))
        return found


def _given(inputs: Iterable[object]) -> Tensor | None:
    tensor = next((tensor for tensor in tensors(inputs) if tensor.is_floating_point()), None)
    if tensor is None or unmeasurable(tensor) or tensor.dim() < 2 or not tensor.numel():
        return None
    return tensor


def _rows(tensor: Tensor) -> Tensor:
    """Some samples of some features, (samples, features), in float32."""
    # From all over the batch: a whole data set may be given at once, one class or source at a time.
    # At odd distances, since sources often take turns.
    some = tensor.detach()[:: (len(tensor) // _SAMPLES - 1) | 1 if len(tensor) > _SAMPLES else 1]
    some = some[:_SAMPLES]
    flat = some.flatten(1)
    step = -(-flat.shape[1] // _FEATURES)
    while any(math.gcd(step, extent) > 1 for extent in tensor.shape[1:] if extent > 1) and step > 1:
        step += 1
    return flat[:, ::step].float()


def _nothing(like: Tensor) -> _Sums:
    return _Sums(torch.zeros_like(like), torch.zeros_like(like))


def _compared(model: TrackedModel, known: _Inputs, evaluated: _Sums, step: int) -> Unread:
    """What will tell how the two kinds of inputs lie to each other."""
    trained, name = known.trained, model.name
    counts = trained.count, evaluated.count
    sums = (known.center, trained.first, trained.second, evaluated.first, evaluated.second)

    def items(_numbers: Numbers, lists: Lists) -> list[Item]:
        center, *rest = (np.asarray(each, dtype=np.float64) for each in lists)
        ours = _moments(center, rest[0], rest[1], counts[0])
        theirs = _moments(center, rest[2], rest[3], counts[1])
        detail = compare(ours, theirs)
        if not detail:
            return []
        told: dict[str, Json] = {**detail, "trained": counts[0], "evaluated": counts[1]}
        return [Event(step, EventKind.INPUTS, Site(name), told)]

    return Unread([], [each.clone() for each in sums], items)


def _moments(center: Floats, first: Floats, second: Floats, count: int) -> tuple[Floats, Floats]:
    """Mean and deviation of each feature."""
    mean = first / count
    return center + mean, np.sqrt(np.maximum(second / count - mean * mean, 0.0))


def compare(ours: tuple[Floats, Floats], theirs: tuple[Floats, Floats]) -> dict[str, float]:
    """How the means and deviations of features in evaluation lie to those in training.

    Args:
        ours: Mean and deviation of each feature in training, (features,) each.
        theirs: The same in evaluation.

    Returns:
        features (that vary in training), ratio (median of the deviations' ratios), spread (between
        the quartiles of their logarithms), far (share of ratios beyond 2 or below 1/2), shift
        (median distance of the means in deviations of training), profile (deviation of training's
        means over the features' own, the median), correlation and slope of evaluation's means over
        training's, and the shares of features of mean 0 and deviation 1 in both; empty if no
        feature varies, or not all of it is finite.
    """
    (mean, std), (other, deviation) = ours, theirs
    if not all(np.isfinite(each).all() for each in (mean, std, other, deviation)):
        return {}
    moving = std[std > 0]
    if not len(moving):
        return {}
    varies = std > _STILL * float(np.median(moving))
    mean, std, other, deviation = (each[varies] for each in (mean, std, other, deviation))
    ratio: Floats = deviation / std
    away: Floats = np.abs((other - mean) / std)
    logs: Floats = np.log(np.maximum(ratio, 1e-12))
    low, middle, high = (float(np.quantile(logs, part)) for part in (0.25, 0.5, 0.75))
    slope, correlation = _line(mean, other)
    return {
        "features": float(len(mean)),
        "ratio": math.exp(middle),
        "spread": high - low,
        "far": float(np.mean((ratio > 2) | (ratio < 0.5))),
        "shift": float(np.median(away)),
        "profile": float(mean.std()) / float(np.median(std)),
        "slope": slope,
        "correlation": correlation,
        "standard": _standard(mean, std),
        "standard_evaluated": _standard(other, deviation),
    }


def _line(x: Floats, y: Floats) -> tuple[float, float]:
    """Slope and correlation of y over x; 0 where one of them is constant."""
    dx, dy = x - x.mean(), y - y.mean()
    xx, yy, xy = float(dx @ dx), float(dy @ dy), float(dx @ dy)
    return (xy / xx, xy / (xx * yy) ** 0.5) if xx > 0 and yy > 0 else (0.0, 0.0)


def _standard(mean: Floats, std: Floats) -> float:
    """The share of features that are of mean 0 and deviation 1, about."""
    return float(np.mean((np.abs(mean) < 0.3) & (std > 0.7) & (std < 1.4)))
