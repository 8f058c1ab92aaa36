"""A state as it is in another framework: what changes, what is lost, and when it is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from traindx.messages import Message, say
from traindx.norm.arrays import Array
from traindx.norm.choices import Estimator, GroupOrder
from traindx.norm.convert.frameworks.framework import Framework, spec_of_preset
from traindx.norm.convert.purpose import Purpose
from traindx.norm.convert.state import (
    BIAS,
    KERNEL,
    MEAN,
    VAR,
    WEIGHT,
    NormState,
    RefusedError,
    refuse_unsound,
)
from traindx.norm.explain.difference import Difference, Reach
from traindx.norm.explain.explaining import canonical, explain
from traindx.norm.spec import NormSpec

BOTH = {"torch": {"BatchNorm", "GroupNorm", "InstanceNorm"}}
"""Layers that have weight and bias, or neither."""
_MOST_AXES = 5
"""Axes of an input at most: batch, channels, and three of space."""
_KEPT_APART = {"eps", "kind", "weight_offset", "groups"}
"""What is carried by itself, so that a difference of the defaults says nothing."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user asks for.

    Attributes:
        purpose: What must come through unchanged.
        axis: Where the channels are in the target; None as is usual there.
        momentum: The weight of a new batch, where the source has none.
        elements: Elements behind a statistic of a training batch.
        batches: How many batches a layer has seen, where the source does not tell.
    """

    purpose: Purpose = Purpose.EVALUATION
    axis: int | None = None
    momentum: float | None = None
    elements: int | None = None
    batches: int | None = None


@dataclass(frozen=True, slots=True)
class Carried:
    """A layer on both sides.

    Attributes:
        before: As it was.
        after: As it is in the target.
        notes: What its user should know.
    """

    before: NormState
    after: NormState
    notes: tuple[Message, ...] = ()


def carry(state: NormState, target: Framework, wish: Wish) -> Carried:
    """A state in another framework.

    Raises:
        RefusedError: Something would be lost.
    """
    state = replace(state, spec=canonical(state.spec))
    refuse_unsound(state)
    if state.spec.running is not None and MEAN not in state.arrays and target.name != "torch":
        raise RefusedError(
            say("it keeps no running statistics, so it depends on the batch in evaluation, too")
        )
    if state.spec.kind not in target.presets:
        raise RefusedError(
            say(
                "{target} has no {kind}: write it from its parts, or leave it out",
                target=target.name,
                kind=state.spec.kind,
            )
        )
    _refuse_odd(state, target)
    notes: list[Message] = []
    spec = spec_of_preset(target.presets[state.spec.kind], **_options(state, target, wish, notes))
    _refuse_lossy(state.spec, spec, target)
    arrays = _arrays(state, spec, target, wish, notes)
    batches = _batches(state, spec, target, wish, notes)
    after = NormState(target.names(state.name), spec, arrays, batches)
    target.layer(after, after.channels or "C")  # refuses what it cannot say
    return Carried(state, after, tuple(notes))


def _refuse_odd(state: NormState, target: Framework) -> None:
    """What only the source has."""
    spec = state.spec
    if any(not -_MOST_AXES <= axis < _MOST_AXES for axis in spec.reduced.named):
        raise RefusedError(
            say(
                "it normalizes the axes {axes}, of more than {most} there are",
                axes=", ".join(map(str, spec.reduced.named[:5])),
                most=_MOST_AXES,
            )
        )
    if spec.kind == "InstanceNorm" and spec.running and target.name != "torch":
        raise RefusedError(
            say(
                "it keeps running statistics, which an InstanceNorm does in torch alone; for "
                "evaluation only, name it a BatchNorm: `--layer '{name}=torch.BatchNorm2d'`",
                name=state.name,
            )
        )
    window = spec.window
    if window is not None and window.before != window.after and target.name != "torch":
        raise RefusedError(
            say(
                "its window of even size has a neighbour more before the element; in {target} it "
                "would be after it, so the outputs are others. Train with an odd size",
                target=target.name,
            )
        )
    if spec.groups is not None and spec.groups.order is not GroupOrder.BLOCKED:
        raise RefusedError(
            say(
                "its groups take every so many channels, and those of {target} neighbours: reorder "
                "the channels of the model first",
                target=target.name,
            )
        )
    if spec.groups is not None and spec.groups.affine:
        raise RefusedError(
            say(
                "its weight has a value a group, as in opset 18, and the channels are not known; "
                "export the model with opset 21"
            )
        )


def _options(
    state: NormState, target: Framework, wish: Wish, notes: list[Message]
) -> dict[str, Any]:
    """The options of the target's preset."""
    spec = state.spec
    found: dict[str, Any] = {"eps": spec.eps}
    channel = target.axis if wish.axis is None else wish.axis
    match spec.kind:
        case "BatchNorm":
            momentum = _momentum(spec, target, wish)
            return {**found, "axis": channel, "momentum": momentum}
        case "GroupNorm":
            assert spec.groups is not None
            return {**found, "axis": channel, "num_groups": spec.groups.count}
        case "InstanceNorm":
            kept = spec.running
            tracked = {"variance": kept.variance, "momentum": kept.momentum} if kept else {}
            return {**found, "axis": channel, **tracked}
        case "LayerNorm" | "RMSNorm":
            return {"eps": _eps(state, target, notes), "normalized_ndim": _last_axes(spec, target)}
        case "LocalResponseNorm":
            window = spec.window
            assert window is not None
            size = window.before + 1 + window.after
            return {
                "size": size,
                "alpha": window.alpha * size,
                "beta": window.beta,
                "k": window.k,
                "axis": channel,
            }
        case _:
            return {}


def _momentum(spec: NormSpec, target: Framework, wish: Wish) -> float | None:
    assert spec.running is not None, "a BatchNorm"
    momentum = spec.running.momentum
    if momentum is None and wish.momentum is not None:
        return wish.momentum
    if momentum is None and not target.counts:
        raise RefusedError(
            say(
                "its momentum is none: it averages all batches equally, for which {target} has no "
                "setting. Name the weight of a new batch, as `--momentum 0.1`",
                target=target.name,
            )
        )
    return momentum


def _eps(state: NormState, target: Framework, notes: list[Message]) -> float | None:
    if state.spec.eps is not None or target.name == "torch":
        return state.spec.eps
    kind = next(iter(state.arrays.values())).dtype if state.arrays else np.dtype(np.float32)
    value = float(np.finfo(np.float64 if kind == np.float64 else np.float32).eps)
    notes.append(
        say("its eps is that of the type computed in; {eps:.4g} is written for it", eps=value)
    )
    return value


def _last_axes(spec: NormSpec, target: Framework) -> int:
    named = spec.reduced.named
    if set(named) != set(range(-len(named), 0)):
        raise RefusedError(
            say(
                "it normalizes the axes {axes}, and a {kind} of {target} the last ones: transpose "
                "before and after it",
                axes=", ".join(map(str, named)),
                kind=spec.kind,
                target=target.name,
            )
        )
    return len(named)


def _refuse_lossy(before: NormSpec, after: NormSpec, target: Framework) -> None:
    """Whatever else would change the output, by the same table that `norm explain` prints."""
    lost = _first_loss(before, after)
    if lost is not None:
        raise RefusedError(
            say(
                "in {target} its output would be another. {effect}",
                target=target.name,
                effect=lost.said.effect,
            )
        )


@lru_cache
def _first_loss(before: NormSpec, after: NormSpec) -> Difference | None:
    return next((one for one in explain(before, after) if _loses(one)), None)


def _loses(one: Difference) -> bool:
    if one.field == "eps_placement":  # of weights' lengths, against which eps is nothing: proved
        return False
    return one.reach is Reach.OUTPUT and one.field not in _KEPT_APART and one.field != "reduced"


def _arrays(
    state: NormState, spec: NormSpec, target: Framework, wish: Wish, notes: list[Message]
) -> Mapping[str, Array]:
    arrays = dict(state.arrays)
    shift = state.spec.weight_offset - spec.weight_offset
    if shift and WEIGHT in arrays:
        arrays[WEIGHT] = (arrays[WEIGHT] + shift).astype(arrays[WEIGHT].dtype)
        notes.append(say("{shift:g} was added to its weight, which acted so", shift=shift))
    both = spec.kind in BOTH.get(target.name, ()) or (spec.kind == "LayerNorm" and BIAS in arrays)
    if both and target.name == "torch" and (WEIGHT in arrays) != (BIAS in arrays):
        missing, value = (BIAS, 0.0) if WEIGHT in arrays else (WEIGHT, 1.0)
        like = next(iter(arrays.values()))
        arrays[missing] = np.full(state.shape, value, like.dtype)
        notes.append(
            say(
                "a {role} of {value:g} was added, since torch has both or none: freeze it, if it "
                "is to stay so",
                role=missing,
                value=value,
            )
        )
    if spec.running is not None and VAR in arrays and state.spec.running is not None:
        factor = _estimated(state.spec, spec, wish, notes)
        if factor != 1:
            arrays[VAR] = (arrays[VAR] * factor).astype(arrays[VAR].dtype)
    if KERNEL in arrays and target.name == "keras":
        notes.append(
            say(
                "its kernel was divided by its singular value, as Keras keeps it: how large it was "
                "before is lost, which evaluation does not need"
            )
        )
    return arrays


def _estimated(before: NormSpec, after: NormSpec, wish: Wish, notes: list[Message]) -> float:
    """What the running variance is multiplied by: 1 for evaluation."""
    assert before.running is not None
    assert after.running is not None
    one, other = before.running.variance, after.running.variance
    if one.lost == other.lost:
        return 1.0
    if wish.purpose is Purpose.EVALUATION:
        notes.append(_next_step(after, other))
        return 1.0
    if wish.elements is None:
        raise RefusedError(
            say(
                "its running variance averages {one} variances, and the target's {other} ones: to "
                "go on training, tell the elements of a channel in a batch with `--elements`",
                one=str(one.value),
                other=str(other.value),
            )
        )
    n = wish.elements
    return (n - one.lost) / (n - other.lost)


def _next_step(after: NormSpec, other: Estimator) -> Message:
    assert after.running is not None
    return say(
        "evaluation is the same; in training {other} variances are averaged now, which are "
        "var / (n - 1) {way} for n elements of a channel, times momentum {momentum:g} at each step",
        other=str(other.value),
        way=say("greater") if other.lost else say("smaller"),
        momentum=after.running.momentum or 0.0,
    )


def _batches(
    state: NormState, spec: NormSpec, target: Framework, wish: Wish, notes: list[Message]
) -> int | None:
    """The counter: what was counted, what the user says, or none."""
    if not target.counts or spec.running is None or not spec.running.counted:
        return None
    batches = state.batches if state.batches is not None else wish.batches
    needed = wish.purpose is Purpose.TRAINING or spec.running.momentum is None
    if batches is None and needed:
        raise RefusedError(
            say(
                "how many batches it has seen is told nowhere, and {target} counts them: tell it "
                "with `--batches`",
                target=target.name,
            )
        )
    if batches is None:
        notes.append(say("its counter of batches is left out: the source has none"))
    return batches


def with_name(carried: Carried, name: str) -> Carried:
    """The same under another name in the target."""
    return replace(carried, after=replace(carried.after, name=name))
