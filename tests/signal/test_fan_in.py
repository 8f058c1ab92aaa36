"""The fan-in rule: exact where every case can be counted, within its error where sampled."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traindx.errors import ArgumentError
from traindx.signal.fan_in import enumerate_variance, predicted_variance, sample_variance

small = st.integers(-6, 6).map(lambda n: Fraction(n, 2))


@settings(max_examples=40, deadline=None)
@given(
    fan_in=st.integers(1, 3),
    pair=st.tuples(small, small),
    inputs=st.lists(small, min_size=1, max_size=3),
)
def test_rule_is_exact_for_independent_weights_of_mean_0(
    fan_in: int, pair: tuple[Fraction, Fraction], inputs: list[Fraction]
) -> None:
    found = enumerate_variance(fan_in, [*pair, -pair[0] - pair[1]], inputs)
    assert found.variance == found.predicted
    assert found.num_cases == (3 * len(inputs)) ** fan_in


def test_v_is_the_mean_square_and_not_the_variance_of_the_inputs() -> None:
    constant = enumerate_variance(2, [Fraction(-1), Fraction(1)], [Fraction(3)])
    assert constant.variance == 2 * 1 * 9  # the inputs' variance is 0


def gaussian(scale: float):
    return lambda rng, shape: rng.normal(0, scale, shape)


@pytest.mark.parametrize("num_samples", [1000, 70_000])
def test_samples_agree_within_their_standard_error(num_samples: int) -> None:
    found = sample_variance(
        8,
        gaussian(0.5),
        gaussian(2.0),
        np.random.default_rng(3),
        predicted=8.0,
        num_samples=num_samples,
    )
    assert abs(found.z) < 4
    assert found.standard_error < 25 / np.sqrt(num_samples)


def test_standard_error_is_the_spread_of_estimates_over_seeds() -> None:
    estimates = [
        sample_variance(
            4,
            gaussian(1.0),
            gaussian(1.0),
            np.random.default_rng(seed),
            predicted=4.0,
            num_samples=2000,
        )
        for seed in range(400)
    ]
    spread = np.std([estimate.variance for estimate in estimates], ddof=1)
    claimed = np.mean([estimate.standard_error for estimate in estimates])
    assert claimed == pytest.approx(spread, rel=0.15)


def test_weights_with_a_mean_break_the_rule_and_the_samples_show_it() -> None:
    found = sample_variance(
        8,
        lambda rng, shape: rng.normal(0.5, 0.5, shape),
        gaussian(2.0),
        np.random.default_rng(3),
        predicted=8.0,
        num_samples=10_000,
    )
    assert found.z > 10


def test_same_generator_state_gives_the_same_estimate() -> None:
    def run() -> float:
        rng = np.random.default_rng(7)
        return sample_variance(
            2, gaussian(1.0), gaussian(1.0), rng, predicted=2.0, num_samples=100
        ).variance

    assert run() == run()


def test_outputs_that_never_vary_agree_only_with_a_prediction_of_0() -> None:
    def zeros(rng: np.random.Generator, shape: tuple[int, int]):
        return np.zeros(shape)

    rng = np.random.default_rng(0)
    for predicted, z in [(0.0, 0.0), (1.0, -np.inf)]:
        found = sample_variance(2, zeros, zeros, rng, predicted=predicted, num_samples=10)
        assert found.z == z


def test_what_the_rule_does_not_cover_is_refused() -> None:
    with pytest.raises(ArgumentError, match="weights of mean 0 and at least one input"):
        enumerate_variance(2, [Fraction(1), Fraction(2)], [Fraction(1)])
    with pytest.raises(ArgumentError, match="got fan_in=0"):
        predicted_variance(0, Fraction(1), Fraction(1))
    rng = np.random.default_rng(0)
    with pytest.raises(ArgumentError, match="at least 2 samples; got 1"):
        sample_variance(1, gaussian(1), gaussian(1), rng, predicted=1.0, num_samples=1)
