"""The rational twin beside the reference: how far apart, and by which state."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tests.norm.cases import Case
from traindx.norm.exact_layers import Parameters
from traindx.norm.reference import Array, PowerVectors, RunningStats, power_iterated

FORWARD, BACKWARD = 1e-12, 1e-10


def apart(exact: Any, ours: Array) -> float:
    """The largest deviation, relative where the exact value is over 1."""
    pairs = zip(flat(exact), np.ravel(ours), strict=True)
    return max(float(abs(Fraction(float(o)) - e) / max(1, abs(e))) for e, o in pairs)


def flat(nested: Any) -> list[Fraction]:
    if isinstance(nested, list):
        return [number for item in nested for number in flat(item)]
    return [nested]


def used(case: Case) -> tuple[RunningStats | PowerVectors | None, Parameters]:
    """The state as the forward uses it: u and v after their iterations."""
    if not isinstance(case.running, PowerVectors):
        return case.running, case.given
    moved = power_iterated(case.spec, case.running, case.x)
    return moved, replace(case.given, u=moved.u.tolist(), v=moved.v.tolist())
