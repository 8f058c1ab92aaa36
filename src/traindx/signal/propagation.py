"""One model's picture: what was measured, what theory says, and what the right gains would do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from traindx.errors import ArgumentError
from traindx.messages import say
from traindx.signal.layers import Weighted
from traindx.signal.profile import Expected, Passage, expected, gradient_squares
from traindx.signal.repair import Repaired, Stability, jacobian_bound, repaired, stabilities


@dataclass(frozen=True, slots=True)
class Fall:
    """How many times the last weighted layer's gradient (RMS) that of the first is.

    Attributes:
        measured: Of this model.
        theory: By theory, from the last layer to the first; None if it does not get there.
        repaired: By theory, with the right gains; None if it does not get there.
    """

    measured: float
    theory: float | None
    repaired: float | None


@dataclass(frozen=True, slots=True)
class Propagation:
    """All that is known of how a signal travels through one model.

    Attributes:
        target: The model's name.
        samples: Samples of the batch; None if it has no such axis.
        variance: Mean square that the right gains keep.
        training: Whether the model was in training mode; None where its modules differ.
        passages: What was measured.
        expected: What theory says of it.
        repaired: What theory says with the right gains.
        stabilities: What the activations do to deviations.
        fall: What depth does to the gradient; None without two layers that have one.
        bound: Greatest factor from a change of the input to one of the output; None if not known.
    """

    target: str
    samples: int | None
    variance: float
    training: bool | None
    passages: Sequence[Passage]
    expected: Sequence[Expected]
    repaired: Sequence[Repaired]
    stabilities: Sequence[Stability]
    fall: Fall | None
    bound: float | None


def propagation(
    target: str,
    passages: Sequence[Passage],
    *,
    samples: int | None,
    training: bool | None,
    variance: float = 1.0,
) -> Propagation:
    """The picture of what was measured.

    Raises:
        ArgumentError: The variance to keep is not a finite number over 0.
    """
    if not 0 < variance < float("inf"):
        raise ArgumentError(
            say(
                "The variance to keep is a finite number over 0; got {variance}.", variance=variance
            )
        )
    theory, mended = expected(passages), repaired(passages, variance)
    return Propagation(
        target,
        samples,
        variance,
        training,
        passages,
        theory,
        mended,
        stabilities(passages, variance),
        _fall(passages, theory, mended),
        jacobian_bound(passages),
    )


def _fall(
    passages: Sequence[Passage], theory: Sequence[Expected], mended: Sequence[Repaired]
) -> Fall | None:
    weighted = [i for i, passage in enumerate(passages) if isinstance(passage.layer, Weighted)]
    if len(weighted) < 2:
        return None
    first, last = weighted[0], weighted[-1]
    factors = [each.backward for each in theory]
    unbroken = gradient_squares(passages, factors, measured=False)
    behind = passages[last].gradient
    measured = _times(passages[first].gradient, behind)
    if measured is None:
        return None
    return Fall(
        measured,
        _times(unbroken[first], behind if unbroken[last] is None else unbroken[last]),
        _times(
            mended[first].gradient,
            behind if mended[last].gradient is None else mended[last].gradient,
        ),
    )


def _times(first: float | None, last: float | None) -> float | None:
    return math.sqrt(first / last) if first and last else None
