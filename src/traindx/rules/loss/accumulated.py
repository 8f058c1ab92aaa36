"""Losses of several batches that are summed before a step, where their mean is meant."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from traindx.facts import ModelFacts
from traindx.records import Site
from traindx.run import Run

_FIRST = 3
"""Steps that are taken before the weights have changed much."""
_MEANS = {
    *("NllLossBackward0", "NllLoss2DBackward0", "MseLossBackward0", "SmoothL1LossBackward0"),
    *("HuberLossBackward0", "BinaryCrossEntropyBackward0", "MeanBackward0", "MeanBackward1"),
    *("BinaryCrossEntropyWithLogitsBackward0", "SoftMarginLossBackward0"),
}
"""Operations that make a loss which is divided by nothing afterwards."""


class Summed(NamedTuple):
    """A model whose steps are taken on the sum of several losses.

    Attributes:
        model: Its name.
        passes: Backward passes in a step.
        moved: The part of its own size by which a weight moves in the first steps (median).
    """

    model: str
    passes: float
    moved: float


def summed(run: Run, fewest: float) -> Iterator[Summed]:
    """The models that are trained by plain SGD on sums of losses that nothing divides.

    Args:
        run: The run.
        fewest: Backward passes in a step that there must be.
    """
    for series in run.series("backwards"):
        passes = median(series.tail(10))
        if passes < fewest:
            continue
        for model in run.models.values():
            operations = {loss.operation for loss in run.losses.values()
                          if model.name in Site(loss.models).models}  # fmt: skip
            if operations and operations <= _MEANS and _is_plain(run, model):
                yield Summed(model.name, passes, _moved(run, model))


def _is_plain(run: Run, model: ModelFacts) -> bool:
    """Whether one optimizer, which feels how large gradients are, trains a model."""
    names = {name for param in model.params for name in param.optimizers}
    kinds = [run.optimizers[name].kind for name in names if name in run.optimizers]
    return len(names) == 1 and len(run.optimizers) == 1 and kinds == ["SGD"]


def _moved(run: Run, model: ModelFacts) -> float:
    matrices = {param.fqn for param in model.params if len(param.shape) > 1 and param.trainable}
    largest = [
        max(early)
        for series in run.series("update.ratio", model=model.name)
        if series.site.fqn in matrices
        and (early := [value for step, value in series if step < _FIRST])
    ]
    return median(largest) if largest else 0.0
