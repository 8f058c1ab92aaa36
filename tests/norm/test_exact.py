"""The rational twin: right to far below float64, and in agreement with the reference."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traindx.errors import ArgumentError
from traindx.norm import exact, reference
from traindx.norm.presets import torch_batch_norm, torch_layer_norm

EPS = Fraction(1, 100_000)


@settings(max_examples=200, deadline=None)
@given(st.fractions(min_value=0).filter(bool), st.integers(-400, 400))
def test_square_root_squares_back_to_within_2_to_minus_158(value: Fraction, power: int) -> None:
    scaled = value * Fraction(2) ** power
    root = exact.square_root(scaled)
    assert root**2 <= scaled
    assert 1 - root**2 / scaled < Fraction(1, 2**158)


def test_square_roots_of_squares_are_exact() -> None:
    assert exact.square_root(Fraction(9, 4)) == Fraction(3, 2)
    assert exact.square_root(Fraction(0)) == 0


tables = st.integers(1, 4).flatmap(
    lambda width: st.lists(
        st.lists(
            st.integers(-64, 64).map(lambda n: Fraction(n, 8)), min_size=width, max_size=width
        ),
        min_size=2,
        max_size=6,
    )
)


@settings(max_examples=60, deadline=None)
@given(table=tables)
def test_reference_agrees_with_fractions_in_training_running_and_evaluation(
    table: list[list[Fraction]],
) -> None:
    width = len(table[0])
    weight = [Fraction(n + 1, 2) for n in range(width)]
    bias = [Fraction(-n, 4) for n in range(width)]
    x, w, b = np.array(table, dtype=float), np.array(weight, float), np.array(bias, float)
    spec = torch_batch_norm()

    trained = exact.batch_norm_train(table, weight, bias, EPS)
    assert worst(trained, reference.forward(spec, x, w, b)) <= 1e-12

    mean, var = exact.running_update(
        table, [Fraction(0)] * width, [Fraction(1)] * width, Fraction(1, 10)
    )
    running = reference.updated(spec, reference.fresh(spec, x.shape), x)
    assert worst([mean, var], np.array([running.mean, running.var])) <= 1e-12

    evaluated = exact.batch_norm_eval(table, mean, var, weight, bias, EPS)
    assert worst(evaluated, reference.evaluate(spec, running, x, w, b)) <= 1e-12

    rows = exact.layer_norm(table, EPS, weight, bias)
    assert worst(rows, reference.forward(torch_layer_norm(), x, w, b)) <= 1e-12


def worst(table: list[list[Fraction]], array: np.ndarray) -> float:
    return max(
        float(abs(number - Fraction(float(other))))
        for row, others in zip(table, array, strict=True)
        for number, other in zip(row, others, strict=True)
    )


def test_moments_of_too_few_values_are_refused() -> None:
    with pytest.raises(ArgumentError, match="at least one value; got none"):
        exact.mean([])
    with pytest.raises(ArgumentError, match="at least two values; got one"):
        exact.variance([Fraction(1)], unbiased=True)
    with pytest.raises(ArgumentError, match=r"at least 0; got -1\.0"):
        exact.square_root(Fraction(-1))
