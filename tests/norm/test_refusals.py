"""What the reference refuses: each message states the contract, what came, and the repair."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from traindx.errors import ArgumentError
from traindx.norm.choices import EmptyBatch, Estimator
from traindx.norm.presets import torch_batch_norm, torch_layer_norm
from traindx.norm.reference import RunningStats, evaluate, forward, fresh, statistics, updated
from traindx.norm.spec import Axes, Running

BATCH, LAYER = torch_batch_norm(), torch_layer_norm()
X = [[1.0, 2.0], [3.0, 0.0]]
CASES: dict[str, tuple[Callable[[], object], str]] = {
    "one sample in training": (
        lambda: forward(BATCH, [[1.0, 2.0]]),
        "BatchNorm needs more than one element for each statistic in training; got 1 in an input "
        "of shape (1, 2). Use a larger batch, or LayerNorm or GroupNorm.",
    ),
    "one sample for an unbiased variance": (
        lambda: updated(BATCH, fresh(BATCH, (1, 2)), [[1.0, 2.0]]),
        "An unbiased variance needs at least 2 elements; got 1. Use a larger batch.",
    ),
    "not a number": (
        lambda: forward(BATCH, [[1.0, 2.0], [float("nan"), 0.0]]),
        "Normalization needs finite numbers for the input; got nan at index (1, 0). One such "
        "element spoils its whole statistic: find where it comes from, or remove it.",
    ),
    "sum that overflows": (
        lambda: forward(LAYER, [[1e200, -1e200]]),
        "Normalization needs finite numbers for the sum of squares; got inf at index (0, 0). One "
        "such element spoils its whole statistic: find where it comes from, or remove it.",
    ),
    "complex numbers": (
        lambda: forward(LAYER, np.array([[1j, 2]])),
        "Normalization needs an array of real numbers for the input; got what NumPy cannot read as "
        "one (the numbers are complex). Pass numbers in rows of equal length.",
    ),
    "empty batch": (
        lambda: forward(replace(BATCH, empty=EmptyBatch.REFUSE), np.empty((0, 2))),
        "BatchNorm needs at least one element; got an input of shape (0, 2). Skip empty batches.",
    ),
    "unknown axis": (
        lambda: forward(BATCH, [1.0, 2.0]),
        "An axis must exist in the input; got axis 1 for an input of 1 axes. Name an axis from -1 "
        "to 0, or give the input that axis.",
    ),
    "unknown negative axis": (
        lambda: statistics(replace(LAYER, reduced=Axes((-3,))), X),
        "An axis must exist in the input; got axis -3 for an input of 2 axes. Name an axis from -2 "
        "to 1, or give the input that axis.",
    ),
    "weight of the wrong shape": (
        lambda: forward(BATCH, X, weight=[1.0, 2.0, 3.0]),
        "`weight` needs shape (2,) for an input of shape (2, 2); got (3,). Pass one value for each "
        "index of axes (1,).",
    ),
    "running mean of the wrong shape": (
        lambda: updated(BATCH, RunningStats(np.zeros(3), np.ones(3)), X),
        "`running_mean` needs shape (2,) for an input of shape (2, 2); got (3,). Pass one value "
        "for each index of axes (1,).",
    ),
    "negative running variance": (
        lambda: evaluate(BATCH, RunningStats(np.zeros(2), np.array([1.0, -0.5])), X),
        "`running_var` must not be negative; got -0.5. Reset the running statistics and estimate "
        "them again.",
    ),
    "running statistics of a layer without them": (
        lambda: fresh(LAYER, (2, 2)),
        "Running statistics need a layer that keeps them; got LayerNorm, which does not. Call "
        "`forward`, which is the same in training and evaluation.",
    ),
    "eps of zero": (
        lambda: torch_batch_norm(eps=0.0),
        "BatchNorm needs a positive, finite `eps`; got 0.0. Use 1e-5.",
    ),
    "momentum over 1": (
        lambda: Running(Estimator.BIASED, 1.5),
        "`momentum` is the weight of the new value, from 0 to 1; got 1.5. If your framework gives "
        "the old value's weight, pass 1 minus it.",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_refused_with_contract_what_came_and_repair(case: str) -> None:
    call, message = CASES[case]
    with pytest.raises(ArgumentError) as raised:
        call()
    assert str(raised.value) == message


def test_rows_of_unequal_length_are_refused() -> None:
    with pytest.raises(ArgumentError, match="Pass numbers in rows of equal length"):
        forward(LAYER, [[1.0, 2.0], [3.0]])


def test_one_element_is_its_own_mean_where_the_layer_allows_it() -> None:
    assert forward(LAYER, [[5.0], [7.0]], bias=[3.0]).tolist() == [[3.0], [3.0]]
