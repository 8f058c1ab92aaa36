"""What elements are divided by, and what acts on them then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx.facts import Json
from traindx.messages import Message, say
from traindx.norm.choices import EpsPlacement, Estimator, Scale
from traindx.norm.explain.difference import Array, Given, Reach, Said, explains
from traindx.norm.spec import NormSpec

LADDER = (1e-6, 1e-4, 1e-2, 1.0, 100.0)
"""Variances that a difference is shown for where no checkpoint is given."""
FLOAT32 = float(np.finfo(np.float32).eps)
_SHOWN = 3
"""Layers that are told, those with the largest change first."""
_PLACED = {
    EpsPlacement.INSIDE_ROOT: "sqrt(v + eps)",
    EpsPlacement.OUTSIDE_ROOT: "sqrt(v) + eps",
    EpsPlacement.MAX_INSIDE_ROOT: "sqrt(max(v, eps))",
    EpsPlacement.MAX_OUTSIDE_ROOT: "max(sqrt(v), eps)",
    EpsPlacement.NONE: "sqrt(v)",
    EpsPlacement.ZERO_TO_ZERO: "sqrt(v), or 1 where it is 0",
}


Rule = tuple[EpsPlacement, float | None]
"""Where eps stands, and what it is."""


def divisor(rule: Rule, v: Array) -> Array:
    """What a set of spread `v` is divided by."""
    placement, given = rule
    eps = FLOAT32 if given is None else given
    root = np.sqrt(v)
    match placement:
        case EpsPlacement.INSIDE_ROOT:
            return np.asarray(np.sqrt(v + eps))
        case EpsPlacement.OUTSIDE_ROOT:
            return np.asarray(root + eps)
        case EpsPlacement.MAX_INSIDE_ROOT:
            return np.asarray(np.sqrt(np.maximum(v, eps)))
        case EpsPlacement.MAX_OUTSIDE_ROOT:
            return np.asarray(np.maximum(root, eps))
        case EpsPlacement.NONE:
            return np.asarray(root)
        case EpsPlacement.ZERO_TO_ZERO:
            return np.asarray(np.where(root == 0, 1.0, root))


def _times(a: Rule, b: Rule, v: Array) -> Array:
    """How many times as large the second layer's output is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return divisor(a, v) / divisor(b, v)


def _ratios(a: Rule, b: Rule, given: Given) -> tuple[Sequence[Message], dict[str, Json]]:
    """The ratio of outputs for the user's own running variances, or for a ladder of variances."""
    if not given.tracked:
        found = _times(a, b, np.array(LADDER))
        lines = [
            say("at variance {var:g} the output is {times} times as large", var=v, times=_fine(t))
            for v, t in zip(LADDER, found, strict=True)
        ]
        return lines, {"variances": list(LADDER), "output_times": _json(found)}
    worst: list[tuple[float, Message, dict[str, Json]]] = []
    for name, _, var in given.tracked:
        times = _times(a, b, np.maximum(var, 0))
        away = np.abs(np.log(np.where(np.isfinite(times) & (times > 0), times, 1.0)))
        c = int(np.argmax(away))
        line = say(
            "{layer}, channel {c}: at its running variance {var:.3g} the output is {times} times "
            "as large (the median channel {median})",
            layer=name,
            c=c,
            var=float(var[c]),
            times=_fine(times[c]),
            median=_fine(np.median(times)),
        )
        entry: dict[str, Json] = {
            "layer": name,
            "channel": c,
            "variance": float(var[c]),
            "output_times": _number(float(times[c])),
            "median_times": _number(float(np.median(times))),
        }
        worst.append((float(away[c]), line, entry))
    worst.sort(key=lambda one: -one[0])
    lines = [line for _, line, _ in worst[:_SHOWN]]
    if len(worst) > _SHOWN:
        lines.append(say("{n} more layers are changed less", n=len(worst) - _SHOWN))
    return lines, {"layers": [entry for *_, entry in worst]}


def _fine(value: float) -> str:
    """A factor near 1 with the digits that show it."""
    away = abs(value - 1)
    if not np.isfinite(value) or away >= 0.01 or away == 0:
        return f"{value:.4g}"
    return f"1 {'+' if value > 1 else '-'} {away:.2g}"


def _json(values: Array) -> list[Json]:
    return [_number(float(v)) for v in values]


def _number(value: float) -> Json:
    return value if np.isfinite(value) else str(value)


_WITHOUT = {EpsPlacement.NONE, EpsPlacement.ZERO_TO_ZERO}


@explains("eps", Reach.OUTPUT)
def eps(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """The value of eps, where the layer that has one has it."""
    place = b.eps_placement if a.eps_placement in _WITHOUT else a.eps_placement
    lines, data = _ratios((place, a.eps), (place, b.eps), given)
    effect = say(
        "A set of variance v is divided by {one} with eps {a} and with eps {b}: the smaller v, the "
        "more the output changes.",
        one=_PLACED[place],
        a=_eps(a),
        b=_eps(b),
    )
    return Said(effect, lines, data)


def _eps(spec: NormSpec) -> str:
    return f"{spec.eps:g}" if spec.eps is not None else f"{FLOAT32:.3g}"


@explains("eps_placement", Reach.OUTPUT)
def eps_placement(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """Where eps stands, with the first's value, or the second's where the first has none."""
    value = b.eps if a.eps_placement in _WITHOUT else a.eps
    lines, data = _ratios((a.eps_placement, value), (b.eps_placement, value), given)
    effect = say(
        "A set of variance v is divided by {one} and by {other}: the same where v is far above "
        "eps, and another thing where it is not.",
        one=_PLACED[a.eps_placement],
        other=_PLACED[b.eps_placement],
    )
    return Said(effect, lines, data)


@explains("centered", Reach.OUTPUT)
def centered(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """Whether the mean is subtracted."""
    lines: list[Message] = []
    data: dict[str, Json] = {}
    if given.tracked:
        ratios = ((name, np.abs(m) / np.sqrt(v + FLOAT32)) for name, m, v in given.tracked)
        name, worst = max(((n, float(np.max(r))) for n, r in ratios), key=lambda one: one[1])
        lines.append(
            say(
                "{layer}: a channel's mean is {ratio:.3g} of its standard deviations from 0",
                layer=name,
                ratio=worst,
            )
        )
        data = {"layer": name, "mean_over_std": worst}
    if a.centered:
        effect = say(
            "The mean is no longer subtracted: what it was stays in every output, as a constant "
            "that the bias was not trained for."
        )
    else:
        effect = say(
            "The mean is subtracted now: a part of the output that later layers were trained on is "
            "gone."
        )
    return Said(effect, lines, data)


_SCALES = {
    Scale.STANDARD_DEVIATION: say("the root of the mean squared deviation from the mean"),
    Scale.ROOT_MEAN_SQUARE: say("the root of the mean square"),
    Scale.EUCLIDEAN_NORM: say("the root of the sum of squares"),
    Scale.SUM_OF_MAGNITUDES: say("the sum of magnitudes"),
}


@explains("scale", Reach.OUTPUT)
def scale(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """What elements are divided by."""
    x = np.array([1.0, 2.0, 3.0])
    one, other = (_spread(spec, x) for spec in (a, b))
    lines = [say("[1, 2, 3] is divided by {a:.4g} and by {b:.4g}", a=one, b=other)]
    effect = say(
        "Elements are divided by {a} and by {b}: other numbers for almost any input.",
        a=_SCALES[a.scale],
        b=_SCALES[b.scale],
    )
    return Said(effect, lines, {"input": x.tolist(), "divisors": [one, other]})


def _spread(spec: NormSpec, x: Array) -> float:
    match spec.scale:
        case Scale.STANDARD_DEVIATION:
            return float(np.std(x))
        case Scale.ROOT_MEAN_SQUARE:
            return float(np.sqrt(np.mean(x**2)))
        case Scale.EUCLIDEAN_NORM:
            return float(np.sqrt(np.sum(x**2)))
        case Scale.SUM_OF_MAGNITUDES:
            return float(np.sum(np.abs(x)))


COUNTS = (2, 8, 32, 1568)
"""Elements behind a statistic that estimators are compared for; the last is 32 images of 7 x 7."""


def estimators(
    one: Estimator, other: Estimator, given: Given
) -> tuple[list[Message], dict[str, Json]]:
    """The factor between two estimates of the same variance."""
    counts = COUNTS if given.elements is None else (given.elements,)
    factors = [
        (n - one.lost) / (n - other.lost) if n > other.lost else float("inf") for n in counts
    ]
    lines = [
        say(
            "over {n} elements the second variance is {factor} times the first",
            n=n,
            factor=_fine(f),
        )
        for n, f in zip(counts, factors, strict=True)
    ]
    return lines, {"elements": list(counts), "variance_times": _json(np.array(factors))}


@explains("variance", Reach.OUTPUT)
def variance(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """The estimator used to normalize."""
    lines, data = estimators(a.variance, b.variance, given)
    effect = say(
        "A batch is normalized by its {a} and by its {b} variance: outputs in training differ by "
        "the root of the factor.",
        a=str(a.variance.value),
        b=str(b.variance.value),
    )
    return Said(effect, lines, data)


@explains("weight_offset", Reach.OUTPUT)
def weight_offset(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """What is added to the weight."""
    shift = a.weight_offset - b.weight_offset
    effect = say(
        "A weight w acts as w + {a:g} and as w + {b:g}: add {shift:g} to each that is moved.",
        a=a.weight_offset,
        b=b.weight_offset,
        shift=shift,
    )
    return Said(effect, list(_offset_lines(a, b, given)), {"add_to_weight": shift})


def _offset_lines(a: NormSpec, b: NormSpec, given: Given) -> Iterator[Message]:
    own = [(layer.name, layer.weight) for layer in given.layers if layer.weight is not None]
    for name, weight in own[:_SHOWN]:
        w = float(np.median(weight))
        yield say(
            "{layer}: its median weight {w:.3g} acts as {a:.3g}, and copied as it is as {b:.3g}",
            layer=name,
            w=w,
            a=w + a.weight_offset,
            b=w + b.weight_offset,
        )
    if not own:
        yield say(
            "a weight that acts as 1, copied as it is, acts as {b:g}",
            b=1 - a.weight_offset + b.weight_offset,
        )
