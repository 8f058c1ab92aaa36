"""Variance maps, fixed points and gains against iteration, differences and closed forms."""

import math

import pytest

from traindx.errors import ArgumentError
from traindx.signal.activations import activation
from traindx.signal.mean_field import PlainNetwork, critical, depth_scale, gain


def _plain(name: str, weight_variance: float, bias_variance: float = 0.0) -> PlainNetwork:
    return PlainNetwork(activation(name), weight_variance, bias_variance)


@pytest.mark.parametrize(("name", "expected"), [("ReLU", math.sqrt(2)), ("Identity", 1.0)])
def test_the_gain_of_what_is_homogeneous_does_not_depend_on_the_variance(
    name: str, expected: float
) -> None:
    for variance in (1e-4, 1.0, 1e4):
        assert gain(activation(name), variance) == pytest.approx(expected, rel=1e-12)


def test_the_gain_keeps_the_variance() -> None:
    for name in ("GELU", "SiLU", "Tanh", "Sigmoid", "ELU"):
        for variance in (0.1, 1.0, 7.0):
            plain = _plain(name, gain(activation(name), variance) ** 2)
            assert plain.variance(variance) == pytest.approx(variance, rel=1e-12)


@pytest.mark.parametrize("name", ["GELU", "SiLU", "Tanh", "Hardshrink", "ReLU"])
def test_the_slope_of_the_variance_map_is_its_difference_quotient(name: str) -> None:
    plain, q, h = _plain(name, 1.7, 0.2), 1.3, 1e-4
    quotient = (plain.variance(q + h) - plain.variance(q - h)) / (2 * h)
    assert plain.variance_slope(q) == pytest.approx(quotient, rel=1e-6)


def test_a_stable_fixed_point_is_where_depth_leads() -> None:
    plain = _plain("Tanh", 2.0, 0.05)
    (point,) = plain.fixed_points()
    assert point.stable
    for start in (0.01, 5.0):
        q = start
        for _ in range(400):
            q = plain.variance(q)
        assert q == pytest.approx(point.variance, rel=1e-9)


def test_the_gain_of_gelu_and_silu_keeps_a_variance_from_which_deviations_run_away() -> None:
    for name in ("GELU", "SiLU"):
        unit = _plain(name, gain(activation(name)) ** 2)
        (point,) = unit.fixed_points()
        assert point.variance == pytest.approx(1.0, rel=1e-9)
        assert not point.stable
        up = down = 1.0
        for start, factor in ((1.01, 1), (0.99, -1)):
            q = start
            for _ in range(30):
                q = unit.variance(q)
            up, down = (q, down) if factor > 0 else (up, q)
        assert up > 1.4
        assert down < 0.7


def test_the_gain_of_relu_shrinks_gelu_and_silu() -> None:
    for name in ("GELU", "SiLU"):
        q = 1.0
        for _ in range(30):
            q = _plain(name, 2.0).variance(q)
        assert math.sqrt(q) < 1e-3


def test_relu_at_its_gain_keeps_any_variance_and_so_has_no_fixed_point() -> None:
    assert _plain("ReLU", 2.0).keeps_any_variance()
    assert _plain("ReLU", 2.0).fixed_points() == []
    assert not _plain("ReLU", 1.9).keeps_any_variance()


def test_nearly_like_relu_is_not_taken_for_a_fixed_point_by_rounding() -> None:
    assert _plain("GELU", 2.0).fixed_points() == []


def test_the_critical_network_keeps_variance_and_gradient() -> None:
    for name in ("Tanh", "GELU", "SELU"):
        plain = critical(activation(name), 1.0)
        assert plain is not None
        assert plain.variance(1.0) == pytest.approx(1.0, rel=1e-12)
        assert plain.chi(1.0) == pytest.approx(1.0, rel=1e-12)


def test_no_bias_makes_sigmoid_critical_at_unit_variance() -> None:
    assert critical(activation("Sigmoid"), 1.0) is None


def test_chi_is_the_slope_of_the_correlation_map_at_one() -> None:
    plain = _plain("Tanh", 1.5, 0.1)
    (point,) = plain.fixed_points()
    h = 1e-5
    slope = (1 - plain.correlation(point.variance, 1 - h)) / h
    assert slope == pytest.approx(point.chi, rel=1e-3)


def test_the_depth_scale_is_the_layers_of_an_e_fold_change() -> None:
    assert depth_scale(math.exp(-0.5)) == pytest.approx(2.0)
    assert depth_scale(1.0) == math.inf
    assert depth_scale(0.0) == 0.0


def test_what_is_not_defined_is_refused() -> None:
    with pytest.raises(ArgumentError, match="at least 0; got -1"):
        _plain("ReLU", -1.0)
    with pytest.raises(ArgumentError, match="variance over 0; got 0"):
        _plain("Tanh", 1.0).variance_slope(0.0)
    with pytest.raises(ArgumentError, match="No gain keeps a variance of 0"):
        gain(activation("ReLU"), 0.0)
