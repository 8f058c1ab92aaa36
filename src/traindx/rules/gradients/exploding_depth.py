"""G002: gradients grow on their way to the first layers, until they tear the weights apart."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from traindx.facts import ModelFacts, ParamFacts
from traindx.findings import Evidence, Severity
from traindx.messages import Message, say
from traindx.records import Point, Site
from traindx.rules.gradients.depth import (
    EXPLODES,
    DepthProfile,
    explodes,
    matrices,
    no_depth,
    profiles_at,
)
from traindx.rules.rule import rule
from traindx.run import Run

_BACK = 5
"""Measured steps looked at: a run that explodes is not finite a few steps later."""

_TEARING = 0.1
"""Update of the first layer over its weight beyond which an overflow is put down to it."""


@dataclass(frozen=True, slots=True)
class _Explosion:
    """A profile that explodes, and what it does.

    Attributes:
        profile: The gradients.
        update: The largest update over its weight in the same step; 0 if none was measured.
        torn: The weight that it was of.
        growth: The first layer's gradient over its least in the measured steps before.
        overflows: Whether the loss was not finite soon after.
        initial: Whether gradients exploded before the first update.
    """

    profile: DepthProfile
    update: float
    torn: str
    growth: float
    overflows: bool
    initial: bool


@rule(
    "G002",
    severity=Severity.WARNING,
    reads=("grad.rms",),
    applies=no_depth,
    explained_by=("G006", "L007", "N004", "N010", "N013", "N017", "O001", "O012"),
    remedies=("clip-gradients", "lower-lr", "init-xavier"),
)
def exploding_depth(
    run: Run,
    *,
    ratio: float = EXPLODES,
    update: float = 0.3,
    certain: float = 1.0,
    growth: float = 10.0,
    loss: float = 0.25,
) -> Iterator[Evidence]:
    """The gradient grows layer by layer, until the first layers are torn away from where they were.

    ## Why it matters
    Backward multiplies one Jacobian a layer. Where each stretches the gradient by the same factor,
    the first layers get an exponentially larger one than the last, and usually the signal grows
    on its way forward as well. A learning rate that suits one end of the network then throws the
    other far away in a single step, and the loss overflows to NaN.

    ## How it is measured
    On the RMS of the gradient (so that the size of a layer does not matter) of at least 4 weight
    matrices of one module kind in one model, in the order of their first call, and likewise of what
    these modules put out: where signal and gradient grow in opposite directions, the weights'
    gradients, which are products of both, are all of a size. The first over the last must be above
    `ratio`, the gradient must fall by more than 0.05 decades (powers of ten) per layer by least
    squares, and no two neighbours may make up more than two thirds of the decades. And it must do
    harm, at the same step: the largest update of these weights is more than `update` of the weight;
    or the first gradient is `growth` times its least over the 5 measured steps before while the
    loss is above its first value; or the loss is not finite within the next 5 measured steps, after
    an update of more than 0.1 of a weight or such a growth. It is an error if the update is more
    than `certain` times the weight, or the loss is not finite. The last measured steps with finite
    gradients are looked at, so that a run which is NaN from step 3 on is judged by its first
    three. Silent once the loss is at `loss` of its first value or below.

    ## How to fix
    Start with weights that keep the size of what passes them: `nn.init.kaiming_normal_` for ReLU,
    `nn.init.xavier_normal_` for tanh. Put a normalization layer before each activation, or scale
    residual branches down. `torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)` before the
    step keeps single explosions from doing harm, but does not bring the layers into balance.

    ## False alarms
    In a convolutional network the first layers have somewhat larger gradients, since more positions
    add up (a ratio of 16 in a small residual network, more with larger images): that harms nothing,
    and the rule asks for harm. Optimizers that divide by the gradient's own size (Adam) take steps
    of the usual length even so, and are reported only if the loss overflows or the gradient keeps
    growing. Gradients that are clipped give small updates. A weight that starts at zero has no size
    to compare its update with. Where an exploding gradient follows from steps that are too long, it
    is told as a consequence of O001. An explosion over time, in a recurrent layer, is not seen: its
    weights are one matrix.

    ## References
    Bengio, Simard & Frasconi, "Learning long-term dependencies with gradient descent is difficult"
    (1994). Pascanu, Mikolov & Bengio, "On the difficulty of training recurrent neural networks"
    (ICML 2013), on clipping. Glorot & Bengio (AISTATS 2010). Zhang et al., "AutoTrainer" (ICSE
    2021), for the ratio of 70.
    """
    for model in run.models.values():
        learned = run.loss_fraction(model.name)
        if learned <= loss:
            continue
        for found in _explosions(run, model, ratio):
            rising = found.growth >= growth and learned > 1
            torn = found.overflows and (found.update > _TEARING or found.growth >= growth)
            if found.update > update or torn or rising:
                is_error = found.update > certain or torn
                severity = Severity.ERROR if is_error else Severity.WARNING
                yield _evidence(found, ratio, severity)
                break


def _explosions(run: Run, model: ModelFacts, ratio: float) -> Iterator[_Explosion]:
    """What explodes at the last measured steps with finite gradients, the earliest first."""
    steps = run.newest("grad.rms", model=model.name).steps
    if not len(steps):
        return
    losses = run.loss_of(model.name)
    finite = losses is None or math.isfinite(losses.last)
    for step in [int(steps[0])] if finite else _before_overflow(run, model):
        for profile in profiles_at(run, model, step, above=ratio):
            if explodes(profile, ratio):
                yield _explosion(run, model, profile, overflows=not finite)


def _before_overflow(run: Run, model: ModelFacts) -> list[int]:
    """The steps to judge by of a run whose numbers have overflowed: those before it."""
    first = run.series("grad.rms", model=model.name)[0]
    # No step after the last finite gradient of any layer comes into question: of a run that has
    # been without numbers for long, they need not be looked at one by one.
    last = first.step_before(_last_finite(run, model) + 1)
    while last is not None and not _is_finite(run, model, last):
        last = first.step_before(last)
    if last is None:
        return []
    steps = [last]
    while len(steps) < _BACK and (before := first.step_before(steps[-1])) is not None:
        steps.append(before)
    return steps[::-1]


def _last_finite(run: Run, model: ModelFacts) -> int:
    """The last step at which the gradient of some weight matrix or its output was finite."""
    params = [param for params in matrices(model).values() for param in params]
    places = [("grad.rms", param.fqn) for param in params]
    places += [("output_grad.rms", param.module) for param in params]
    found = (run.at(quantity, Site(model.name, place)) for quantity, place in places)
    return max((series.last_finite for series in found if series), default=-1)


def _is_finite(run: Run, model: ModelFacts, step: int) -> bool:
    profiles = list(profiles_at(run, model, step))
    return bool(profiles) and any(profile.is_finite for profile in profiles)


def _explosion(
    run: Run, model: ModelFacts, profile: DepthProfile, *, overflows: bool
) -> _Explosion:
    update, torn = max(_update(run, model, param, profile.step) for param in profile.params)
    first = profile.params[0]
    place = first.module if profile.of_outputs else first.fqn
    rms = run.at("output_grad.rms" if profile.of_outputs else "grad.rms", Site(model.name, place))
    before = [value for value in rms.before(profile.step, _BACK) if value > 0] if rms else []
    least = min(before, default=profile.rms[0])
    initial = any(explodes(start) for start in profiles_at(run, model, 0))
    return _Explosion(profile, update, torn, profile.rms[0] / least, overflows, initial)


def _update(run: Run, model: ModelFacts, param: ParamFacts, step: int) -> tuple[float, str]:
    """How far a weight was moved over its size; 0 if it has none, for it started at zero."""
    site = Site(model.name, param.fqn)
    updates, size = run.at("update.ratio", site), run.at("param.rms", site)
    ratio = updates.at(step) if updates and size and size.first > 0 else None
    return (0.0 if ratio is None or math.isnan(ratio) else ratio), param.fqn


def _evidence(found: _Explosion, ratio: float, severity: Severity) -> Evidence:
    profile = found.profile
    first, last = profile.params[0], profile.params[-1]
    return Evidence(
        site=Site(profile.model, first.module),
        step=profile.step,
        message=say(
            "gradient RMS is {first_rms:.2g} at {first} and {last_rms:.2g} at {last}: a ratio of "
            "{ratio:.2g} (threshold {threshold:g}), growing by {slope:.2f} decades per layer "
            "towards the first of {layers} {kind} layers{harm}",
            first_rms=profile.rms[0],
            first=_where(profile, first),
            last_rms=profile.rms[-1],
            last=_where(profile, last),
            ratio=profile.ratio,
            threshold=ratio,
            slope=-profile.slope,
            layers=len(profile.params),
            kind=profile.kind,
            harm=_harm(found),
        ),
        numbers={
            "ratio": profile.ratio,
            "slope": -profile.slope,
            "first": profile.rms[0],
            "last": profile.rms[-1],
            "layers": len(profile.params),
            "update": found.update,
            "growth": found.growth,
        },
        point=Point.GRAD,
        cause=_cause(found),
        fix=say(
            "for weight in model.parameters():\n"
            "    if weight.dim() >= 2:\n"
            "        torch.nn.init.xavier_normal_(weight)  # before ReLU: kaiming_normal_\n"
            "# and, before optimizer.step():\n"
            "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
        ),
        excluded=(
            say("a jump at a single layer"),
            say("larger first gradients that do no harm"),
            say("clipped gradients"),
        ),
        series=("grad.rms", "update.ratio", "loss"),
        severity=severity,
        layers=profile.modules,
        profiles=("output_grad.rms",) if profile.of_outputs else ("grad.rms",),
    )


def _where(profile: DepthProfile, param: ParamFacts) -> Message:
    if profile.of_outputs:
        return say("the output of `{module}`", module=param.module)
    return say("`{weight}`", weight=param.fqn)


def _harm(found: _Explosion) -> Message:
    if found.overflows:
        return say(
            "; the step changed `{weight}` by {update:.2g} of its size, and the loss is no longer "
            "finite",
            weight=found.torn,
            update=found.update,
        )
    if found.update > _TEARING:
        return say(
            "; the step changed `{weight}` by {update:.2g} of its size",
            weight=found.torn,
            update=found.update,
        )
    return say(
        "; the first gradient is {growth:.3g} times what it was {steps} measured steps ago",
        growth=found.growth,
        steps=_BACK,
    )


def _cause(found: _Explosion) -> Message:
    if found.initial:
        return say(
            "Every layer stretches the gradient that passes it, from the first step on: the "
            "weights start too large for a network of this depth."
        )
    return say(
        "Every layer stretches the gradient that passes it, since the weights have grown in "
        "training."
    )
