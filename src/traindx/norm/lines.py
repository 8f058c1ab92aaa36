"""The lines of the worked example, as data.

A line is a name, how its value is shown, and one expression that every arithmetic evaluates.
Adding a line is adding an entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from traindx.norm.sheet import STRANGER, Arithmetic, Number, Table, X

Value = Number | Sequence[Number] | Table


@dataclass(frozen=True, slots=True)
class Line:
    """One result of the example.

    Attributes:
        key: Its name.
        show: How the value is printed after `key=`.
        value: What it is, in any arithmetic.
        relative: Whether its deviations are judged relative to the exact value.
        stated: What must be printed, where the example's own text says so.
    """

    key: str
    show: Callable[[Value], str]
    value: Callable[[Arithmetic], Value]
    relative: bool = False
    stated: str | None = None


def flat(value: Value) -> list[Number]:
    """The numbers of a value, row after row."""
    if isinstance(value, Sequence):
        return [number for item in value for number in flat(item)]
    return [value]


def _plain(value: Value) -> str:
    return f" {value}"


def _nine_digits(value: Value) -> str:
    return f" {_each(value, lambda number: repr(round(float(number), 9)))}"


def _nine_places(value: Value) -> str:
    return f" {_each(value, lambda number: f'{float(number):.9f}')}"


def _shortest(value: Value) -> str:
    return f" {_each(value, lambda number: repr(float(number)))}"


def _scientific(value: Value) -> str:
    return _each(value, lambda number: f"{float(number):.15e}")


def _fraction(value: Value) -> str:
    return f" {value} = {_shortest(value).strip()}"


def _each(value: Value, show: Callable[[Number], str]) -> str:
    if isinstance(value, Sequence):
        return f"[{', '.join(_each(item, show) for item in value)}]"
    return show(value)


def _is_first_sample_invariant(layer: Callable[[Table], Table]) -> bool:
    """Whether the first sample's output has the same bits alone, in its batch, and in a mix."""
    batches: list[Table] = [X[:1], X, [X[0], STRANGER]]
    # repr tells floats apart to the last bit, and 0.0 from -0.0.
    return len({repr(layer(batch)[0]) for batch in batches}) == 1


LINES = (
    Line("batch_mean", _plain, lambda by: by.batch_mean(X)),
    Line("batch_variance_biased", _nine_digits, lambda by: by.biased_var(X)),
    Line("batch_variance_unbiased", _plain, lambda by: by.unbiased_var(X)),
    Line("BN_train_output", _nine_digits, lambda by: by.train(X)),
    Line("BN_train_column_mean_after_affine", _nine_digits, lambda by: by.batch_mean(by.train(X))),
    Line("BN_running_mean_after_one_batch", _plain, lambda by: by.running_mean),
    Line("BN_running_variance_after_one_batch", _plain, lambda by: by.running_var),
    Line("BN_eval_output", _nine_digits, lambda by: by.evaluate(X)),
    Line(
        "BN_eval_first_sample_batch_composition_invariant",
        _plain,
        lambda by: _is_first_sample_invariant(by.evaluate),
    ),
    Line("LayerNorm_rowwise_output", _nine_digits, lambda by: by.layer_norm(X)),
    Line(
        "LayerNorm_first_sample_batch_composition_invariant",
        _plain,
        lambda by: _is_first_sample_invariant(by.layer_norm),
    ),
    Line(
        "constructed20sigmoid_chain_input_gradient",
        _scientific,
        lambda by: by.chain_derivative,
        relative=True,
    ),
)
"""Printed from float64, compared with torch and with fractions."""

FORMULAS = (
    Line(
        "Y_train_by_fractions",
        _nine_places,
        lambda by: by.train(X),
        stated=" [[-3.449485150, 1.000000000], [-1.000000000, 0.387628712],"
        " [1.449485150, 1.612371288]]",
    ),
    Line(
        "running_mean_new_by_fractions",
        _shortest,
        lambda by: by.running_mean,
        stated=" [0.3, 0.2]",
    ),
    Line(
        "running_var_new_by_fractions",
        _shortest,
        lambda by: by.running_var,
        stated=" [1.3, 1.3]",
    ),
    Line("Y_eval_by_fractions", _nine_places, lambda by: by.evaluate(X)),
    Line(
        "sigmoid_chain_by_fractions",
        _fraction,
        lambda by: by.chain_derivative,
        relative=True,
        stated=f" {Fraction(1, 4) ** 20} = 9.094947017729282e-13",
    ),
)
"""Printed from fractions, compared with float64 and with what the example states."""
