"""The bound follows the condition of the input, and rounding is that of the type."""

import numpy as np
import pytest
import torch

from traindx.norm.conformance.kinds import KINDS, asked_of, shortened
from traindx.norm.conformance.precision import laid_out, numbers, rounded
from traindx.norm.conformance.target import Answer, Call, ask
from traindx.norm.conformance.targets.pytorch import Torch
from traindx.norm.conformance.truth import deviations, truth
from traindx.norm.conformance.undo import undone

X = np.random.default_rng(1).normal(size=(3, 5))


def call(x: np.ndarray, dtype: str = "float32") -> Call:
    return Call("LayerNorm", rounded(x, dtype), dtype)


@pytest.mark.parametrize("mean", [1e2, 1e4, 1e6])
def test_the_bound_grows_as_the_mean_over_the_std(mean: float) -> None:
    spec = KINDS["layer_norm"].spec
    near, far = (truth(spec, call(X + m))["forward"].bound.max() for m in (0.0, mean))
    std = (X + mean).std(axis=1).min()
    assert far / near == pytest.approx(mean / std / 3, rel=0.5)


def test_an_error_of_one_pass_is_over_it_and_of_two_below() -> None:
    spec, question = KINDS["layer_norm"].spec, call(X + 1e4)
    x = question.x.astype(np.float32)
    mean = x.mean(axis=1, keepdims=True)
    two = ((x - mean) ** 2).mean(axis=1, keepdims=True)
    one = np.maximum((x * x).mean(axis=1, keepdims=True) - mean * mean, 0)
    for variance, right in ((two, True), (one, False)):
        y = (x - mean) / np.sqrt(variance + np.float32(1e-5))
        off = deviations(spec, question, Answer(numbers(y)))["forward"]
        assert (off.ratio <= 1) is right


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_rounding_is_that_of_torch(dtype: str) -> None:
    values = np.concatenate([X.ravel(), [1e-3, 65504.0, 3.4e38, 1 + 2**-8, 1 + 3 * 2**-8, np.inf]])
    expected = torch.tensor(values).to(getattr(torch, dtype)).double().numpy()
    assert np.array_equal(rounded(values, dtype), expected)
    assert np.isnan(rounded(np.array([np.nan]), dtype)).all()


@pytest.mark.parametrize("memory", ["contiguous", "strided", "sliced"])
def test_what_is_laid_out_otherwise_holds_the_same_numbers(memory: str) -> None:
    placed = laid_out(X, memory)
    assert np.array_equal(placed, X)
    assert placed.flags.c_contiguous is (memory == "contiguous")


def test_a_target_s_own_error_is_its_answer() -> None:
    answer = ask(
        Torch("torch"), Call("GroupNorm", rounded(X, "float32"), options={"num_groups": 4})
    )
    assert answer.raised.startswith("ValueError: num_channels")
    assert not answer.given


def test_what_a_framework_has_no_words_for_is_not_its_error() -> None:
    answer = ask(Torch("torch"), Call("GroupNorm", rounded(X, "float32")))
    assert answer.lacks == "num_groups must be given"


def test_one_of_several_differences_is_undone_alone() -> None:
    kind = KINDS["batch_norm"]
    found = asked_of(kind, kind.spec, {"eps": 1e-3, "momentum": 0.5, "axis": -1})
    for name, part in (("eps", 1e-5), ("momentum", 0.1), ("axis", 1)):
        left = undone(found, kind.spec, name)
        assert left.running is not None
        changed = {
            "eps": left.eps,
            "momentum": left.running.momentum,
            "axis": left.running.axes.named[0],
        }
        usual = {"eps": 1e-3, "momentum": 0.5, "axis": -1}
        assert changed == {**usual, name: part}


def test_options_in_float32_are_a_rounding_away() -> None:
    short = shortened(KINDS["layer_norm"].spec)
    assert short.eps == float(np.float32(1e-5))
    assert short.eps != 1e-5
