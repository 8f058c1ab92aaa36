"""Finds what a layer computes: the specification nearest to an expected one that explains it.

Fields are changed one at a time, then several, the fewest first, and eps is not tried but solved
for. A specification explains a layer if every answer is within rounding of it: nothing is the best
of a bad lot. What no change explains is said to be unexplained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from traindx.errors import ArgumentError
from traindx.messages import listed, say
from traindx.norm.affine import parameter
from traindx.norm.arrays import total
from traindx.norm.choices import EpsPlacement, Estimator, GroupOrder, Scale
from traindx.norm.conformance.kinds import on_axis, resolved
from traindx.norm.conformance.naming import Difference, number
from traindx.norm.conformance.precision import EPS, Numbers
from traindx.norm.conformance.target import Answer, Call
from traindx.norm.conformance.truth import deviations
from traindx.norm.moments import layout, scale_of, statistics
from traindx.norm.spec import Axes, NormSpec

Seen = Sequence[tuple[Call, Answer]]
"""Questions with their answers."""

LARGE = 1e3
"""The std above which no eps matters."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A specification that explains what was seen, and how it differs from the expected one."""

    spec: NormSpec
    differences: tuple[Difference, ...] = ()


Edit = tuple[Difference, NormSpec]


def agrees(spec: NormSpec, seen: Seen, aspects: Sequence[str] = ("forward",)) -> bool:
    """Whether a specification explains these arrays of every answer."""
    if aspects == ("forward",):
        seen = [(call.where(dy=None), answer) for call, answer in seen]
        if all(call.training for call, _ in seen):
            spec = replace(spec, running=None)
    try:
        found = [deviations(spec, call, answer) for call, answer in seen]
    except ArgumentError:
        return False
    return all(one[a].ratio <= 1 for one in found for a in aspects if a in one)


def fit_forward(expected: NormSpec, seen: Seen) -> Fit | None:
    """The nearest specification whose training outputs are those seen; None if there is none."""
    if agrees(expected, seen):
        return Fit(expected)
    # In float64 an eps shows in anything: what is large is judged as if it were float32.
    large = [
        (call.where(dtype="float32") if call.dtype == "float64" else call, answer)
        for call, answer in seen
        if np.std(call.x) > LARGE
    ] or seen
    ndim = max(call.x.ndim for call, _ in seen)
    for differences, candidate in _structures(expected, large, ndim):
        if large is not seen and not agrees(candidate, large):
            continue
        for more, final in ((), candidate), *_with_eps(candidate, seen):
            if agrees(final, seen):
                return Fit(final, (*differences, *more))
    return None


# -- structure ------------------------------------------------------------------------------------


def _structures(
    spec: NormSpec, seen: Seen, ndim: int
) -> Iterator[tuple[tuple[Difference, ...], NormSpec]]:
    """Specifications with other axes, groups, scales or parameters: fewest changes first."""
    families: list[Callable[[NormSpec], list[Edit]]] = [
        lambda s: _axes(s, ndim),
        lambda s: _groups(s, seen),
        _scales,
        _estimators,
        _parameters,
    ]
    for size in range(len(families) + 1):
        for chosen in combinations(families, size):
            yield from _chain((), spec, chosen)
        if size == 2:
            break


def _chain(
    before: tuple[Difference, ...],
    spec: NormSpec,
    families: Sequence[Callable[[NormSpec], list[Edit]]],
) -> Iterator[tuple[tuple[Difference, ...], NormSpec]]:
    if not families:
        yield before, spec
        return
    for difference, edited in families[0](spec):
        yield from _chain((*before, difference), edited, families[1:])


def _axes(spec: NormSpec, ndim: int) -> list[Edit]:
    edits: list[Edit] = []
    own = spec.reduced.of(ndim)
    if spec.groups is not None or spec.reduced.others:
        now = spec.groups.axis if spec.groups else spec.reduced.named[-1]
        # Groups of the batch axis would be those of one group of channels.
        for axis in (-1, *range(1, ndim - 1), *((0,) if spec.groups is None else ())):
            if axis % ndim != now % ndim:
                words = say("channels on axis {found}, not {expected}", found=axis, expected=now)
                edits.append((Difference("axis", words), on_axis(spec, axis)))
    if spec.groups is not None or spec.window is not None:
        return edits
    for axis in range(ndim):
        if own != (axis,) and len(own) == 1:
            words = say(
                "axis {found} instead of {expected}",
                found=-1 if axis == ndim - 1 else axis,
                expected=-1 if own[0] == ndim - 1 else own[0],
            )
            edits.append((Difference("axis", words), on_axis(spec, axis)))
    several = [c for size in range(1, ndim + 1) for c in combinations(range(ndim), size)]
    for axes in several:
        if axes != own and not (len(own) == 1 and len(axes) == 1):
            words = say(
                "statistics over axes {found}, not {expected}",
                found=listed(map(str, axes)),
                expected=listed(map(str, own)),
            )
            kept = Axes(tuple(axis for axis in range(ndim) if axis not in axes))
            running = spec.running and replace(spec.running, axes=kept)
            edited = replace(spec, reduced=Axes(axes), running=running)
            edits.append((Difference("axes", words), edited))
    return edits


def _groups(spec: NormSpec, seen: Seen) -> list[Edit]:
    groups, edits = spec.groups, list[Edit]()
    if groups is None:
        return edits
    turned = _other_order(groups.order)
    words = say(
        "groups are {found}, and not {expected}", found=turned.value, expected=groups.order.value
    )
    edits.append(
        (Difference("group-order", words), replace(spec, groups=replace(groups, order=turned)))
    )
    extents = [call.x.shape[groups.axis] for call, _ in seen]
    for count in range(1, max(extents) + 1):
        if count != groups.count and not any(extent % count for extent in extents):
            words = say(
                "groups are {found}, and not {expected}", found=count, expected=groups.count
            )
            edited = replace(spec, groups=replace(groups, count=count))
            edits.append((Difference("groups", words), edited))
    words = say("weight and bias per group, not per channel")
    edited = replace(spec, groups=replace(groups, affine=True))
    edits.append((Difference("affine-groups", words), edited))
    return edits


def _other_order(order: GroupOrder) -> GroupOrder:
    return GroupOrder.BLOCKED if order is GroupOrder.INTERLEAVED else GroupOrder.INTERLEAVED


def _scales(spec: NormSpec) -> list[Edit]:
    std, rms = Scale.STANDARD_DEVIATION, Scale.ROOT_MEAN_SQUARE
    if spec.window is not None or spec.scale not in (std, rms):
        return []
    edits: list[Edit] = []
    if spec.centered:
        words = say("the mean is not subtracted")
        edits.append((Difference("not-centered", words), replace(spec, centered=False)))
        words = say("the mean is not subtracted, and the root mean square divides")
        edits.append((Difference("rms", words), replace(spec, centered=False, scale=rms)))
    else:
        words = say("divides by the standard deviation, not the root mean square")
        edits.append((Difference("scale", words), replace(spec, scale=std)))
        words = say("the mean is subtracted")
        edits.append((Difference("centered", words), replace(spec, centered=True, scale=std)))
    return edits


def _estimators(spec: NormSpec) -> list[Edit]:
    if spec.scale is not Scale.STANDARD_DEVIATION or spec.window is not None:
        return []
    return [
        (
            Difference(
                "variance",
                say(
                    "divides by the {found} variance, not the {expected}",
                    found=other.value,
                    expected=spec.variance.value,
                ),
            ),
            replace(spec, variance=other),
        )
        for other in other_estimators(spec.variance)[:1]
    ]


def _parameters(spec: NormSpec) -> list[Edit]:
    if spec.affine is None:
        return []
    other = 0.0 if spec.weight_offset else 1.0
    words = say("multiplies by 1 + weight") if other else say("multiplies by the weight alone")
    return [(Difference("weight-offset", words), replace(spec, weight_offset=other))]


def other_estimators(estimator: Estimator) -> tuple[Estimator, ...]:
    """The estimators that it is not."""
    known = (Estimator.BIASED, Estimator.UNBIASED, Estimator.UNBIASED_OR_ZERO)
    return tuple(other for other in known if other is not estimator)


# -- eps ------------------------------------------------------------------------------------------

_PLACES = (
    EpsPlacement.INSIDE_ROOT,
    EpsPlacement.OUTSIDE_ROOT,
    EpsPlacement.MAX_INSIDE_ROOT,
    EpsPlacement.MAX_OUTSIDE_ROOT,
)
_GREATEST = (EpsPlacement.MAX_INSIDE_ROOT, EpsPlacement.MAX_OUTSIDE_ROOT)
_BESIDE_ROOT = (EpsPlacement.OUTSIDE_ROOT, EpsPlacement.MAX_OUTSIDE_ROOT)


def _with_eps(spec: NormSpec, seen: Seen) -> Iterator[tuple[tuple[Difference, ...], NormSpec]]:
    """The specification with the eps that the smallest inputs speak of, in each place."""
    if spec.window is not None:
        return
    smallest = min(seen, key=lambda pair: float(np.std(pair[0].x)))
    try:
        rate, spread = _rate(spec, *smallest)
    except ArgumentError:
        return
    places = sorted(_PLACES, key=lambda place: place is not spec.eps_placement)
    for place in places:
        with np.errstate(all="ignore"):
            solved = float(np.median(_solved(place, rate, spread)))
        eps = _neat(solved)
        least = float(np.min(spread)) ** (0.5 if place in _BESIDE_ROOT else 1)
        told = abs(eps - least * (place in _GREATEST)) > 1e-4 * least
        if np.isfinite(eps) and eps > 0 and told:
            found = replace(spec, eps=eps, eps_placement=place)
            yield tuple(_eps_differences(spec, found, smallest[0].dtype)), found
    for place in (EpsPlacement.NONE, EpsPlacement.ZERO_TO_ZERO):
        if spec.running is None:
            words = say("no eps")
            yield (Difference("eps", words),), replace(spec, eps=0.0, eps_placement=place)


def _solved(place: EpsPlacement, rate: Numbers, spread: Numbers) -> Numbers:
    """The eps that each set speaks of, if it stands in this place."""
    if place is EpsPlacement.INSIDE_ROOT:
        return rate**-2 - spread
    if place is EpsPlacement.OUTSIDE_ROOT:
        return rate**-1 - np.sqrt(spread)
    return rate**-2 if place is EpsPlacement.MAX_INSIDE_ROOT else rate**-1


def _rate(spec: NormSpec, call: Call, answer: Answer) -> tuple[Numbers, Numbers]:
    """What each set was multiplied by, and the spread it has."""
    seen, batch = layout(spec, call.x.shape), statistics(spec, call.x)
    y = answer.y
    if call.bias is not None:
        y = y - parameter(spec, "bias", call.bias, call.x)
    if call.weight is not None:
        y = y / (parameter(spec, "weight", call.weight, call.x) + spec.weight_offset)
    z = seen.split(call.x) - (batch.mean if spec.centered else 0.0)
    with np.errstate(all="ignore"):
        rate = total(seen.split(y) * z, seen.reduced) / total(z * z, seen.reduced)
    return rate, scale_of(spec, batch)


def _neat(value: float) -> float:
    """The shortest number that this may have been before rounding."""
    if not np.isfinite(value) or value <= 0:
        return value
    for known in (EPS["float32"], EPS["float64"], EPS["float16"], EPS["bfloat16"]):
        if abs(value - known) < 1e-3 * known:
            return known
    for digits in (1, 2, 3):
        short = float(f"{value:.{digits}g}")
        if abs(short - value) < 1e-3 * value:
            return short
    return value


def _eps_differences(expected: NormSpec, found: NormSpec, dtype: str) -> Iterator[Difference]:
    before = resolved(expected, dtype)
    if found.eps != before.eps:
        yield Difference("eps", eps_words(found, before))
    if found.eps_placement is not before.eps_placement:
        words = say(
            "eps stands {found}, not {expected}",
            found=found.eps_placement.value,
            expected=before.eps_placement.value,
        )
        yield Difference("eps-placement", words)


def eps_words(found: NormSpec, expected: NormSpec) -> str:
    """That one eps is another."""
    return say(
        "eps is {found}, and not {expected}", found=number(found.eps), expected=number(expected.eps)
    )
