"""The gains that would keep the signal's size from layer to layer, and what they do not mend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from traindx.errors import ArgumentError
from traindx.signal.chain import STEEPEST
from traindx.signal.layers import (
    BatchNormalized,
    Elementwise,
    Layer,
    LayerNormalized,
    Passed,
    Scaled,
    Signal,
    Weighted,
)
from traindx.signal.mean_field import PlainNetwork, gain
from traindx.signal.profile import Passage, followed, gradient_squares


@dataclass(frozen=True, slots=True)
class Repaired:
    """What theory says of a passage once the layers before and it have the right gain.

    Attributes:
        gain: The right gain; None for what has no weights, for the last layer that has some (the
            scale of a prediction is a matter of the loss), where a normalization follows, where
            weights are used twice, and where the input is not known to follow the gains before.
        output: Moments of its output then.
        gradient: Mean square of the gradient at its output then; None if something behind is not
            known, or nothing is behind.
    """

    gain: float | None
    output: Signal | None
    gradient: float | None


def repaired(passages: Sequence[Passage], variance: float = 1.0) -> list[Repaired]:
    """The gains with which every weighted layer's output has this mean square."""
    gains: list[float | None] = [None] * len(passages)
    free = _free(passages)

    def right(index: int, layer: Layer, arriving: Signal) -> Layer:
        if not isinstance(layer, Weighted) or index in free:
            return layer
        gains[index] = wanted = layer.gain_for(arriving, variance)
        return layer if wanted is None else layer.with_gain(wanted)

    reached = followed(passages, right)
    factors = [each.step and each.step.backward for each in reached]
    gradients = gradient_squares(passages, factors, measured=False)
    return [
        Repaired(gain, each.chained, gradient)
        for gain, each, gradient in zip(gains, reached, gradients, strict=True)
    ]


def _free(passages: Sequence[Passage]) -> set[int]:
    """The last with weights, all before a norm, and those whose weights are used twice."""
    weighted = [i for i, passage in enumerate(passages) if isinstance(passage.layer, Weighted)]
    users: dict[int, list[object]] = {}
    for passage in passages:
        for source in passage.sources:
            users.setdefault(source, []).append(passage.layer)
    before_norm = {
        i
        for i, layers in users.items()
        if all(isinstance(layer, BatchNormalized | LayerNormalized) for layer in layers)
        and not passages[i].open
    }
    tied = {passage.tied for passage in passages}
    several = {i for i, passage in enumerate(passages) if passage.tied or passage.fqn in tied}
    return {*weighted[-1:], *before_norm, *several, *_adrift(passages)}


def _adrift(passages: Sequence[Passage]) -> set[int]:
    """Those whose input changes with the gains before in a way that is not known."""
    found: set[int] = set()
    for i, passage in enumerate(passages):
        if isinstance(passage.layer, BatchNormalized | LayerNormalized) or passage.given is None:
            adrift = any(source in found for source in passage.sources) and not passage.made
        elif passage.layer is None:
            before = [passages[source].layer for source in passage.sources]
            adrift = not all(
                isinstance(layer, BatchNormalized | LayerNormalized) for layer in before
            )
        else:
            adrift = bool(passage.broken) or any(source in found for source in passage.sources)
        found.update([i] if adrift else [])
    return found


@dataclass(frozen=True, slots=True)
class Stability:
    """What the gain that keeps a variance does to a deviation from it.

    Attributes:
        name: The activation.
        gain: The gain.
        slope: What a small relative deviation is multiplied by in each layer.
        chi: What a gradient's mean square is multiplied by in each layer.
    """

    name: str
    gain: float
    slope: float
    chi: float


def stabilities(passages: Sequence[Passage], variance: float = 1.0) -> list[Stability]:
    """Of each activation in a network that can keep the variance, in the order they appear."""
    found: dict[str, Stability] = {}
    for layer in (passage.layer for passage in passages):
        if not isinstance(layer, Elementwise) or layer.activation.name in found:
            continue
        with suppress(ArgumentError):  # makes 0 of this variance: no gain keeps it
            right = gain(layer.activation, variance)
            plain = PlainNetwork(layer.activation, right**2)
            name = layer.activation.name
            slope, chi = plain.variance_slope(variance), plain.chi(variance)
            found[name] = Stability(name, right, slope, chi)
    return [*found.values()]


def jacobian_bound(passages: Sequence[Passage]) -> float | None:
    """The greatest factor by which a change of a chain's input can change its output.

    The product of the layers' spectral norms and the activations' steepest slopes: of sigmoids,
    0.25^depth and the norms. None if a layer is neither, or they are no chain.
    """
    for i, passage in enumerate(passages):
        if passage.broken or passage.sources != ((i - 1,) if i else ()):
            return None
        if passage.open and i + 1 < len(passages):
            return None
    factors = [_steepest(passage.layer) for passage in passages]
    known = [factor for factor in factors if factor is not None]
    return math.prod(known) if len(known) == len(factors) else None


def _steepest(layer: object) -> float | None:
    if isinstance(layer, Weighted):
        return layer.spectral_norm
    if isinstance(layer, Elementwise):
        return STEEPEST.get(layer.activation.name)
    if isinstance(layer, Scaled):
        return abs(layer.factor)
    return 1.0 if isinstance(layer, Passed) else None
