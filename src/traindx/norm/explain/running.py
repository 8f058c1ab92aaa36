"""What a layer remembers of its batches."""

from __future__ import annotations

import math

from traindx.facts import Json
from traindx.messages import Message, say
from traindx.norm.explain.difference import Given, Reach, Said, explains
from traindx.norm.explain.scaling import estimators
from traindx.norm.spec import NormSpec, Running

NEW_WEIGHT = ("torch", "mlx")
"""Frameworks whose own `momentum` is the weight of the new value, as ours is."""
_FORGOTTEN = 0.01


def _rule(spec: NormSpec) -> Running:
    assert spec.running is not None, "asked for only where both keep statistics"
    return spec.running


def batches_remembered(momentum: float) -> float:
    """Batches after which what was before weighs 1 %; 0 where it is gone at once."""
    if momentum <= 0:
        return math.inf
    return 0.0 if momentum >= 1 else math.log(_FORGOTTEN) / math.log1p(-momentum)


def argument(name: str, momentum: float) -> float:
    """What a framework calls momentum, for a weight of the new value."""
    return momentum if name.partition(".")[0] in NEW_WEIGHT else 1 - momentum


@explains("running", Reach.OUTPUT)
def running(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """Whether statistics are kept."""
    if a.running:
        effect = say(
            "The second keeps no running statistics: in evaluation it normalizes by the input "
            "itself, and those of the first have no place to go."
        )
    else:
        effect = say(
            "The second normalizes by running statistics in evaluation, which the first has not "
            "collected: they would be the initial 0 and 1."
        )
    return Said(effect)


@explains("running.momentum", Reach.TRAINING)
def momentum(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """How fast running statistics follow, and what misreading the other's convention does."""
    one, other = _rule(a).momentum, _rule(b).momentum
    lines: list[Message] = []
    data: dict[str, Json] = {"new_weight": [one, other]}
    for name, value in zip(given.names, (one, other), strict=True):
        if value is not None:
            lines.append(_memory(name, value))
    if one is None or other is None:
        effect = say(
            "One averages all batches equally, and the other forgets: there is no momentum that "
            "does the same, so name one before the layer is trained on."
        )
        return Said(effect, lines, data)
    lines += _misread(given.names, one, data)
    effect = say(
        "A new batch weighs {a:g} and {b:g}: after the move running statistics follow {speed}.",
        a=one,
        b=other,
        speed=say("faster") if other > one else say("more slowly"),
    )
    return Said(effect, lines, data)


def _memory(name: str, value: float) -> Message:
    return say(
        "{name}: its argument is momentum={own:g}; what was before weighs 1 % after {n} batches",
        name=name,
        own=argument(name, value),
        n=_steps(batches_remembered(value)),
    )


def _misread(names: tuple[str, str], one: float, data: dict[str, Json]) -> list[Message]:
    """What the first's argument does, given to the second as it is written."""
    written = argument(names[0], one)
    read = argument(names[1], written)  # the convention is its own inverse
    if math.isclose(read, one):
        return []
    data["misread_new_weight"] = read
    return [
        say(
            "{a}'s momentum={written:g} given to {b} as it is written would weigh a new batch "
            "{read:g}: 1 % after {n} batches, where {wanted} were meant; write {right:g}",
            a=names[0],
            b=names[1],
            written=written,
            read=read,
            n=_steps(batches_remembered(read)),
            wanted=_steps(batches_remembered(one)),
            right=argument(names[1], one),
        )
    ]


def _steps(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.3g}"


@explains("running.variance", Reach.TRAINING)
def running_variance(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """The estimator that is averaged."""
    lines, data = estimators(_rule(a).variance, _rule(b).variance, given)
    effect = say(
        "The first averages {a} variances of batches, the second {b} ones. Evaluation is the same "
        "right after the move; each training step then pulls the variance by the factor.",
        a=str(_rule(a).variance.value),
        b=str(_rule(b).variance.value),
    )
    return Said(effect, lines, data)


@explains("running.axes", Reach.LAYOUT)
def running_axes(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """The axes of running statistics."""
    return Said(say("Running statistics vary along another axis: the channels must stand there."))


@explains("running.counted", Reach.TRAINING)
def counted(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """Whether batches are counted."""
    if _rule(a).counted:
        return Said(say("The second has no counter of batches: the number of them is lost."))
    return Said(
        say(
            "The second counts its batches, and the first does not tell how many it has seen; the "
            "number matters only where momentum is none."
        )
    )


@explains("running.of_roots", Reach.TRAINING)
def of_roots(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """Whether roots are averaged."""
    one, other = 1.0, 9.0
    mean, root = (one + other) / 2, ((one**0.5 + other**0.5) / 2) ** 2
    return Said(
        say(
            "One averages variances, and the other standard deviations, squared back: a variance "
            "that fluctuates comes out smaller."
        ),
        [say("of variances 1 and 9 half each: {a:g}, and by roots {b:g}", a=mean, b=root)],
        {"of_variances": mean, "of_roots": root},
    )


@explains("renorm", Reach.TRAINING)
def renorm(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """Batch Renorm or not."""
    return Said(
        say(
            "Only one corrects training outputs toward the running statistics (Batch Renorm); in "
            "evaluation both do the same."
        )
    )


def _clip(a: NormSpec, b: NormSpec, given: Given) -> Said:
    return Said(
        say(
            "The corrections of Batch Renorm are clipped elsewhere: training outputs differ beyond."
        )
    )


rmin = explains("renorm.rmin", Reach.TRAINING)(_clip)
rmax = explains("renorm.rmax", Reach.TRAINING)(_clip)
dmax = explains("renorm.dmax", Reach.TRAINING)(_clip)
