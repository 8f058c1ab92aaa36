"""Computes the worked example in every arithmetic there is and says where they differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

from traindx.norm.lines import FORMULAS, LINES, Line, Value, flat
from traindx.norm.sheet import Arithmetic, Number, by_fractions, by_reference
from traindx.signal.fan_in import enumerate_variance, predicted_variance, sample_variance

LIMIT = 1e-12
"""The greatest deviation allowed."""
_SEED = 20
_NUM_SAMPLES = 1_000_000
_MAX_Z = 5.0  # a right rule exceeds it with one seed in two million


@dataclass(frozen=True, slots=True)
class Result:
    """A printed line and how far its value is from what it was compared with.

    Attributes:
        key: Its name.
        text: The line as printed.
        deviations: Largest absolute deviation from each twin, by the twin's name.
        faults: What is wrong with it, a clause each; empty if nothing is.
    """

    key: str
    text: str
    deviations: Mapping[str, float] = field(default_factory=dict[str, float])
    faults: tuple[str, ...] = ()


def verify(ours: Arithmetic | None = None) -> list[Result]:
    """Every line in the order of printing, computed by `ours` and compared with its twins."""
    ours = ours or by_reference()
    torch, torch_version = _torch()
    twins = {"torch": torch} if torch else {}
    twins["fractions"] = by_fractions()
    return [
        Result("numpy", f"numpy={version('numpy')} torch={torch_version} device=cpu dtype=float64"),
        *(_compared(line, ours, twins) for line in LINES),
        Result("scope", _scope(twins)),
        *([] if torch else [Result("torch", "torch was not compared: it is not installed")]),
        _enumerated_fan_in(),
        _sampled_fan_in(np.random.default_rng(_SEED)),
        *(_by_fractions(line, ours) for line in FORMULAS),
    ]


def worst(results: Sequence[Result]) -> str:
    """The largest absolute deviation of all, with the line and the twin it belongs to."""
    deviation, key, twin = max(
        (deviation, result.key, twin)
        for result in results
        for twin, deviation in result.deviations.items()
    )
    return f"worst_deviation={deviation} line={key} against={twin}"


def _torch() -> tuple[Arithmetic | None, str]:
    try:
        from traindx.norm.sheet_torch import VERSION, by_torch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        return None, "none"
    return by_torch(), VERSION


def _scope(twins: Mapping[str, Arithmetic]) -> str:
    return (
        "scope=one CPU BN batch with biased forward/unbiased running variance, fixed affine; "
        "eval/LN checks, constructed scalar chain and fan-in rule (enumerated, sampled) only; "
        f"float64 reference against {' and '.join(twins)}; "
        "no training fit, benchmark, or general vanishing-gradient guarantee"
    )


def _compared(line: Line, ours: Arithmetic, twins: Mapping[str, Arithmetic]) -> Result:
    value = line.value(ours)
    against = {name: line.value(twin) for name, twin in twins.items()}
    deviations = {name: _deviation(value, other) for name, other in against.items()}
    judged = {
        name: _deviation(value, other, relative=line.relative) for name, other in against.items()
    }
    faults = tuple(
        f"differs from {name} by {apart:.3g}" for name, apart in judged.items() if apart > LIMIT
    )
    return Result(line.key, f"{line.key}={line.show(value)}", deviations, faults)


def _by_fractions(line: Line, ours: Arithmetic) -> Result:
    exact = by_fractions()
    shown = line.show(line.value(exact))
    compared = _compared(line, ours, {"fractions": exact})
    text = f"{line.key}={shown} max_deviation={compared.deviations['fractions']}"
    faults = compared.faults
    if line.stated is not None and shown != line.stated:
        faults += (f"is stated as{line.stated}",)
    return Result(line.key, text, compared.deviations, faults)


def _deviation(value: Value, other: Value, *, relative: bool = False) -> float:
    """The largest deviation of a number of `value`; infinite if one is not finite or missing."""
    numbers, others = flat(value), flat(other)
    if len(numbers) != len(others) or not all(map(math.isfinite, numbers + others)):
        return math.inf
    return max(_apart(a, b, relative) for a, b in zip(numbers, others, strict=True))


def _apart(a: Number, b: Number, relative: bool) -> float:
    # As fractions, so that the comparison itself does not round.
    apart = abs(Fraction(a) - Fraction(b))
    if relative and apart:
        return float(apart / abs(Fraction(b))) if b else math.inf
    return float(apart)


def _enumerated_fan_in() -> Result:
    # Skewed weights and inputs whose mean is not 0: v has to be the mean square.
    weights = [Fraction(-2), Fraction(-1), Fraction(3)]
    inputs = [Fraction(0), Fraction(1, 2), Fraction(2)]
    found = enumerate_variance(3, weights, inputs)
    text = (
        f"fan_in_rule_enumerated= Var(output)={found.variance} fan_in*s^2*v={found.predicted} "
        f"equal={found.variance == found.predicted} cases={found.num_cases}"
    )
    apart = float(abs(found.variance - found.predicted))
    faults = (f"differs from the rule by {apart:.3g}",) if apart else ()
    return Result("fan_in_rule_enumerated", text, {"rule": apart}, faults)


def _sampled_fan_in(rng: np.random.Generator) -> Result:
    fan_in, s2, v = 16, Fraction(1, 12), Fraction(1, 2)
    predicted = float(predicted_variance(fan_in, s2, v))
    found = sample_variance(
        fan_in, _uniform, _rectified, rng, predicted=predicted, num_samples=_NUM_SAMPLES
    )
    text = (
        f"fan_in_rule_sampled= Var(output)={found.variance:.6f} +/- {found.standard_error:.6f} "
        f"fan_in*s^2*v={predicted:.6f} z={found.z:.2f} samples={found.num_samples}"
    )
    faults = () if abs(found.z) <= _MAX_Z else (f"is {found.z:.1f} standard errors off the rule",)
    return Result("fan_in_rule_sampled", text, faults=faults)


def _uniform(rng: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Weights on [-1/2, 1/2): mean 0, variance 1/12."""
    return rng.random(shape) - 0.5


def _rectified(rng: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.float64]:
    """A ReLU of standard normal inputs: mean square 1/2."""
    return np.maximum(rng.standard_normal(shape), 0.0)
