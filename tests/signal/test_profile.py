"""What theory says of layers, against what huge random arrays do."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from traindx.errors import ArgumentError
from traindx.signal.activations import activation
from traindx.signal.layers import (
    BatchNormalized,
    Dropped,
    Elementwise,
    Given,
    Joined,
    LayerNormalized,
    Masked,
    Passed,
    Pooled,
    Scaled,
    Signal,
    Summed,
    Weighted,
)
from traindx.signal.profile import Passage, expected
from traindx.signal.propagation import propagation
from traindx.signal.repair import jacobian_bound, repaired

Array = NDArray[np.float64]
N, UNITS = 100, 2000
ONE = Signal(0.0, 1.0, 0.0)


def _signal(x: Array) -> Signal:
    return Signal(float(x.mean()), float((x**2).mean()), float((x.mean(0) ** 2).mean()))


def _correlated(rng: np.random.Generator, variance: float, common: float) -> Array:
    shared = math.sqrt(common) * rng.normal(size=UNITS)
    return shared + math.sqrt(variance - common) * rng.normal(size=(N, UNITS))


def _passage(layer: Any, **others: Any) -> Passage:
    given = Passage("x", "Kind", 1, layer, "", ONE, ONE, mixes=isinstance(layer, Weighted))
    return replace(given, **others)


def _function(layer: Any, *sources: int) -> Passage:
    return Passage("", "function", 1, layer, "", None, None, sources)


@pytest.mark.parametrize("name", ["ReLU", "Sigmoid", "GELU"])
@pytest.mark.parametrize(("variance", "common"), [(1.0, 0.0), (2.0, 1.5), (0.1, 0.0999)])
def test_an_activation_maps_moments_as_it_maps_numbers(
    name: str, variance: float, common: float
) -> None:
    phi = activation(name)
    # Of what all samples share there are only as many draws as units.
    several = [_correlated(np.random.default_rng(i), variance, common) for i in range(6)]
    x = np.concatenate(several, axis=1)
    step = Elementwise(phi).step(_signal(x))
    made = _signal(phi.value(x))
    assert step.output.mean_square == pytest.approx(made.mean_square, rel=0.02)
    assert step.output.mean == pytest.approx(made.mean, rel=0.02, abs=2e-3)
    assert step.output.share == pytest.approx(made.share, rel=0.03)
    assert step.backward == pytest.approx(float((phi.slope(x) ** 2).mean()), rel=0.02)


def test_a_weighted_layer_multiplies_all_alike_and_adds_its_bias_to_what_is_common() -> None:
    rng = np.random.default_rng(1)
    x = _correlated(rng, 2.0, 0.5)
    weight, bias = rng.normal(0, 0.03, (UNITS, 2000)), rng.normal(0.1, 0.7, 2000)
    square, bias_square = float((weight**2).mean()), float((bias**2).mean())
    layer = Weighted(UNITS, 2000, square, bias_square, float(bias.mean()))
    step, made = layer.step(_signal(x)), _signal(x @ weight + bias)
    assert step.output.mean_square == pytest.approx(made.mean_square, rel=0.03)
    assert step.output.common == pytest.approx(made.common, rel=0.05)
    gradient = rng.normal(size=(N, 2000)) @ weight.T
    assert step.backward == pytest.approx(float((gradient**2).mean()), rel=0.03)


def test_dropout_grows_the_mean_square_and_leaves_the_mean() -> None:
    rng = np.random.default_rng(2)
    x = _correlated(rng, 1.0, 0.6)
    dropped = x * (rng.random(x.shape) > 0.3) / 0.7
    step, made = Dropped(0.3).step(_signal(x)), _signal(dropped)
    assert step.output.mean_square == pytest.approx(made.mean_square, rel=0.02)
    assert step.output.common == pytest.approx(made.common, rel=0.02)
    assert step.backward == pytest.approx(1 / 0.7)
    assert Dropped(1.0).step(ONE).output.mean_square == 0


def test_batch_normalization_leaves_only_what_depends_on_the_sample() -> None:
    x = _correlated(np.random.default_rng(3), 4.0, 3.9)
    step = BatchNormalized(0.01, 2.0, 0.5).step(_signal(x))
    normalized = (x - x.mean(0)) / np.sqrt(x.var(0) + 0.01)
    assert step.output.mean_square == pytest.approx(2 * float((normalized**2).mean()) + 0.5, 0.02)
    assert step.output.common == pytest.approx(0.5)
    assert step.backward == pytest.approx(2 / (0.1 + 0.01), rel=0.03)


def test_layer_normalization_takes_away_the_mean_of_the_units() -> None:
    x = 5.0 + _correlated(np.random.default_rng(4), 1.0, 0.25)
    step = LayerNormalized(1e-5).step(_signal(x))
    mean, std = x.mean(1, keepdims=True), x.std(1, keepdims=True)
    made = _signal((x - mean) / std)
    assert step.output.mean_square == pytest.approx(made.mean_square, rel=1e-3)
    assert step.output.common == pytest.approx(made.common, rel=0.05)
    root = LayerNormalized(0.0, centred=False).step(_signal(x))
    assert root.output.mean_square == pytest.approx(1.0)
    assert root.backward == pytest.approx(1 / float((x**2).mean()))


def test_what_is_0_has_no_share_and_passes_a_normalization() -> None:
    nothing = Signal(0.0, 0.0, 0.0)
    assert math.isnan(nothing.share)
    assert BatchNormalized(0.0).step(nothing).output.mean_square == 0
    assert Passed().step(nothing).output == nothing


def test_theory_is_followed_from_layer_to_layer_through_functions() -> None:
    linear = Weighted(10, 10, 0.2)
    first = _passage(linear, made=Signal(0, 1.9, 0.1))
    relu = _function(Elementwise(activation("ReLU")), 0)
    second = _passage(linear, sources=(1,), given=Signal(0.4, 0.9, 0.2))
    one, _, two = expected([first, relu, second])
    assert one.chained == Signal(0.0, 2.0, 0.0)
    assert two.chained is not None
    assert two.chained.mean_square == pytest.approx(2.0)  # and not from the 0.9 measured
    assert two.local is not None
    assert two.local.mean_square == pytest.approx(1.8)
    assert not two.restarts


def test_where_theory_has_no_formula_it_goes_on_from_what_is_measured() -> None:
    unknown = _passage(None, reason="no formula", made=Signal(0, 3.0, 0))
    after = _passage(Weighted(10, 10, 0.2), sources=(0,), given=Signal(0, 3.0, 0))
    stray = _passage(Weighted(10, 10, 0.2), broken="comes out of Add")
    none, anew, broken = expected([unknown, after, stray])
    assert none.chained is None
    assert anew.chained is not None
    assert anew.chained.mean_square == pytest.approx(6.0)
    assert broken.restarts == "comes out of Add"


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e200])
def test_what_is_no_number_any_more_has_no_theory(value: float) -> None:
    linear, relu = Weighted(10, 10, 0.2), Elementwise(activation("ReLU"))
    bad = Signal(0.0, value, 0.0)
    chain = [_passage(linear, given=bad, made=bad), _passage(relu, sources=(0,), given=bad)]
    for each in expected(chain):
        assert (each.local, each.chained) == (None, None)
        assert each.restarts == "its input is not finite"


def test_ways_that_meet_add_up_if_random_weights_lie_between() -> None:
    rng = np.random.default_rng(5)
    x = np.maximum(_correlated(rng, 2.0, 0.5), 0)  # its mean is not 0
    branch = x @ rng.normal(0, UNITS**-0.5, (UNITS, UNITS))
    made = _signal(x - 0.5 * np.maximum(branch, 0))
    relu = Elementwise(activation("ReLU"))
    network = [
        _passage(Weighted(10, 10, 0.1), made=_signal(x), given=_signal(x)),
        _passage(None, sources=(0,), made=_signal(x)),  # what has no formula: as measured
        _passage(Weighted(UNITS, UNITS, 1 / UNITS), sources=(1,)),
        _function(relu, 2),
        _function(Summed((1.0, -0.5)), 1, 3),
    ]
    theory = expected(network)[-1].chained
    assert theory is not None
    assert theory.mean_square == pytest.approx(made.mean_square, rel=0.02)
    assert theory.mean == pytest.approx(made.mean, rel=0.05)
    assert theory.common == pytest.approx(made.common, rel=0.05)
    # Without weights between, both are the same signal, of which theory knows no product.
    same = expected([*network[:1], _function(relu, 0), _function(Summed((1.0, 1.0)), 0, 1)])[-1]
    assert same.chained is None
    assert same.restarts == "it adds signals that may depend on each other"


def test_what_is_added_as_it_is_and_what_is_joined_are_followed() -> None:
    constant = _function(Given(Signal(0.5, 2.0, 2.0)))
    linear = _passage(Weighted(10, 10, 0.1))
    network = [replace(constant, mixes=True), linear, _function(Summed((1.0, 1.0)), 0, 1)]
    assert expected(network)[-1].chained == Signal(0.5, 3.0, 2.0)
    network[-1] = _function(Joined((0.25, 0.75)), 0, 1)
    assert expected(network)[-1].chained == Signal(0.125, 1.25, 0.5)
    assert Scaled(-2.0).step(Signal(0.5, 2.0, 1.0)).output == Signal(-1.0, 8.0, 4.0)


def test_a_gradient_is_the_sum_of_what_comes_back_by_all_ways() -> None:
    linear = Weighted(10, 20, 0.2)
    first = _passage(linear, gradient=41.0)
    second = _passage(linear, sources=(0,), gradient=10.0, gradient_in=40.0)
    one, two = expected([first, second])
    assert (one.gradient, two.gradient) == (40.0, None)  # the end is measured
    branch = _passage(linear, sources=(0,), gradient=7.0, gradient_in=28.0)
    one, *_ = expected([first, second, branch])
    assert one.gradient == 68.0
    # Around the second: once through it, and once past it.
    head = _passage(linear, sources=(2,), gradient=1.0)
    one, *_ = expected([first, second, _function(Summed((1.0, 2.0)), 1, 0), head])
    assert one.gradient == pytest.approx(4.0 * 4.0 + 4.0 * 4.0)
    # Where it goes elsewhere, too, theory is silent, and starts anew from the measured one.
    before = _passage(linear)
    after, one, _ = expected(
        [before, replace(first, open=True, sources=(0,)), replace(second, sources=(1,))]
    )
    assert (after.gradient, one.gradient) == (41.0 * 4.0, None)


def test_right_gains_keep_the_mean_square_of_every_layer_but_the_last() -> None:
    tanh = Elementwise(activation("Tanh"))
    weak = Weighted(100, 100, 0.0001, bias_square=0.04)
    chain = [
        _passage(weak),
        *(
            each
            for i in range(0, 8, 2)
            for each in (
                _function(tanh, i),
                _passage(weak, sources=(i + 1,), given=Signal(0, 0.01, 0)),
            )
        ),
    ]
    mended = repaired(chain, 0.7)[::2]
    assert mended[-1].gain is None
    for each in mended[:-1]:
        assert each.output is not None
        assert each.output.mean_square == pytest.approx(0.7)
    # Two layers of the same kind and the same input have the same gain.
    assert mended[1].gain == pytest.approx(mended[2].gain)


def test_no_gain_is_told_where_the_biases_alone_are_too_large() -> None:
    assert Weighted(10, 10, 0.1, bias_square=2.0).gain_for(ONE, 1.0) is None
    assert Weighted(10, 10, 0.1).gain_for(Signal(0, 0, 0), 1.0) is None


def test_no_gain_is_right_where_a_normalization_follows() -> None:
    chain = [
        _passage(Weighted(10, 10, 0.2)),
        _passage(BatchNormalized(1e-5), sources=(0,)),
        _passage(Weighted(10, 10, 0.2), sources=(1,)),
        _passage(Weighted(10, 10, 0.2), sources=(2,)),
    ]
    assert [each.gain is None for each in repaired(chain)] == [True, True, False, True]


def test_a_chain_of_sigmoids_is_bounded_by_a_quarter_for_each() -> None:
    sigmoid = Elementwise(activation("Sigmoid"))
    unit = Weighted(1, 1, 1.0, spectral_norm=1.0)
    layers = [unit, *(layer for _ in range(20) for layer in (sigmoid, unit))]
    chain = [_passage(layer, sources=(i - 1,) if i else ()) for i, layer in enumerate(layers)]
    assert jacobian_bound(chain) == 0.25**20
    assert jacobian_bound([*chain, _passage(None, sources=(40,))]) is None
    assert jacobian_bound([*chain, _passage(unit, sources=(3,))]) is None
    assert jacobian_bound([replace(chain[0], open=True), *chain[1:]]) is None
    assert jacobian_bound([_passage(Weighted(1, 1, 1.0))]) is None


def test_a_variance_to_keep_is_over_0() -> None:
    for variance in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ArgumentError, match="finite number over 0"):
            propagation("net", [], samples=1, training=True, variance=variance)


def test_a_pooling_does_what_it_was_measured_to_do_in_any_scale() -> None:
    pool = Pooled(Signal(0.5, 2.0, 1.0), Signal(0.8, 1.0, 0.9), backward=0.25)
    step = pool.step(Signal(1.0, 8.0, 4.0))
    assert step.output == Signal(1.6, 4.0, 3.6)
    assert step.backward == 0.25


def test_what_is_multiplied_by_a_mask_is_as_dropout_has_it() -> None:
    rng = np.random.default_rng(6)
    x = _correlated(rng, 2.0, 0.5) + 1.0
    mask = rng.binomial(1, 0.8, x.shape) / 0.8
    made, step = _signal(x * mask), Masked(_signal(mask)).step(_signal(x))
    assert step.output.mean_square == pytest.approx(made.mean_square, rel=0.02)
    assert step.output.common == pytest.approx(made.common, rel=0.02)


def test_gains_behind_what_is_not_known_wait_for_those_before() -> None:
    linear, measured = Weighted(10, 10, 0.2), Signal(0, 1.0, 0)
    unknown = _passage(None, sources=(0,), made=measured)
    chain = [
        _passage(linear),
        unknown,
        _passage(linear, sources=(1,)),
        _passage(linear, sources=(2,)),
    ]
    assert [each.gain is None for each in repaired(chain)] == [False, True, True, True]
    # Behind a normalization nothing of it is left.
    norm = _passage(LayerNormalized(1e-5), sources=(1,))
    chain[2:] = [norm, _passage(linear, sources=(2,)), _passage(linear, sources=(3,))]
    assert [each.gain is None for each in repaired(chain)] == [False, True, True, False, True]


def test_weights_used_twice_have_no_gain_of_their_own() -> None:
    linear = Weighted(10, 10, 0.2)
    chain = [
        _passage(linear, fqn="a"),
        _passage(linear, fqn="b", sources=(0,)),
        _passage(linear, fqn="a", call=2, tied="a", sources=(1,)),
        _passage(linear, fqn="c", sources=(2,)),
    ]
    assert [each.gain is None for each in repaired(chain)] == [True, False, True, True]
