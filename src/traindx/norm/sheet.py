"""The worked example that traindx is checked against, and two ways to compute it.

A batch of three samples with two channels goes through BatchNorm in training, then in evaluation,
and through LayerNorm; a chain of twenty sigmoids stands for depth. The example is kept as
fractions, so that every arithmetic starts from the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from traindx.norm import exact
from traindx.norm.choices import Estimator
from traindx.norm.presets import torch_batch_norm, torch_layer_norm
from traindx.norm.reference import Array, evaluate, forward, fresh, statistics, updated
from traindx.norm.spec import NormSpec
from traindx.signal.chain import sigmoid_chain_bound, sigmoid_chain_derivative

Number = float | Fraction
Row = Sequence[Number]
Table = Sequence[Row]


def _fractions(*numbers: str) -> list[Fraction]:
    return [Fraction(number) for number in numbers]


X = [_fractions("1", "2"), _fractions("3", "0"), _fractions("5", "4")]
STRANGER = _fractions("100", "-100")
"""A sample far from the others, to mix with the first one."""
WEIGHT, BIAS = _fractions("2", "1/2"), _fractions("-1", "1")
EPS, MOMENTUM = Fraction(1, 100_000), Fraction(1, 10)
OLD_MEAN, OLD_VAR = _fractions("0", "0"), _fractions("1", "1")
CHAIN_WEIGHTS = _fractions("1") * 20
CHAIN_BIASES = _fractions("0") + _fractions("-1/2") * 19
"""From input 0 every preactivation is 0: a sigmoid of 0 is 1/2, and the next bias takes it away."""


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """One way to compute the example; all ways must agree.

    Attributes:
        batch_mean: Mean of each column.
        biased_var: Variance of each column, over n.
        unbiased_var: Variance of each column, over n - 1.
        train: BatchNorm in training, with weight and bias.
        running_mean: Running mean after the one batch `X`.
        running_var: Running variance after it.
        evaluate: BatchNorm in evaluation after it.
        layer_norm: LayerNorm of each row, without weight and bias.
        chain_derivative: Derivative of the chain's output with respect to its input 0.
    """

    batch_mean: Callable[[Table], Row]
    biased_var: Callable[[Table], Row]
    unbiased_var: Callable[[Table], Row]
    train: Callable[[Table], Table]
    running_mean: Row
    running_var: Row
    evaluate: Callable[[Table], Table]
    layer_norm: Callable[[Table], Table]
    chain_derivative: Number


def by_reference(batch: NormSpec | None = None, layer: NormSpec | None = None) -> Arithmetic:
    """The example by the float64 reference; other layers can be given, to see them found out."""
    batch = batch or torch_batch_norm(eps=float(EPS), momentum=float(MOMENTUM))
    layer = layer or torch_layer_norm(eps=float(EPS))
    affine = floats([WEIGHT, BIAS])
    running = updated(batch, fresh(batch, (len(X), len(X[0]))), floats(X))

    def variance(x: Table, estimator: Estimator) -> Array:
        return statistics(batch, floats(x)).variance(estimator)[0]

    return Arithmetic(
        batch_mean=lambda x: statistics(batch, floats(x)).mean[0].tolist(),
        biased_var=lambda x: variance(x, Estimator.BIASED).tolist(),
        unbiased_var=lambda x: variance(x, Estimator.UNBIASED).tolist(),
        train=lambda x: forward(batch, floats(x), *affine).tolist(),
        running_mean=running.mean.tolist(),
        running_var=running.var.tolist(),
        evaluate=lambda x: evaluate(batch, running, floats(x), *affine).tolist(),
        layer_norm=lambda x: forward(layer, floats(x)).tolist(),
        chain_derivative=sigmoid_chain_derivative(0.0, *floats([CHAIN_WEIGHTS, CHAIN_BIASES])),
    )


def by_fractions() -> Arithmetic:
    """The example by rational arithmetic."""
    mean, var = exact.running_update(X, OLD_MEAN, OLD_VAR, MOMENTUM)
    return Arithmetic(
        batch_mean=lambda x: [exact.mean(column) for column in _columns(x)],
        biased_var=lambda x: [exact.variance(column) for column in _columns(x)],
        unbiased_var=lambda x: [exact.variance(column, unbiased=True) for column in _columns(x)],
        train=lambda x: exact.batch_norm_train(_rationals(x), WEIGHT, BIAS, EPS),
        running_mean=mean,
        running_var=var,
        evaluate=lambda x: exact.batch_norm_eval(_rationals(x), mean, var, WEIGHT, BIAS, EPS),
        layer_norm=lambda x: exact.layer_norm(_rationals(x), EPS),
        # The example is built so that every sigmoid is at its steepest: the bound is reached.
        chain_derivative=sigmoid_chain_bound(len(CHAIN_WEIGHTS)),
    )


def floats(table: Table) -> list[list[float]]:
    """The table in float64."""
    return [[float(number) for number in row] for row in table]


def _rationals(table: Table) -> list[list[Fraction]]:
    return [[Fraction(number) for number in row] for row in table]


def _columns(table: Table) -> list[tuple[Fraction, ...]]:
    return list(zip(*_rationals(table), strict=True))
