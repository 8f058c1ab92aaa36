"""Which elements are normalized together, and by whose window or vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from traindx.errors import TraindxError
from traindx.facts import Json
from traindx.messages import Message, say
from traindx.norm.choices import GroupOrder
from traindx.norm.explain.difference import Array, Given, Reach, Said, explains
from traindx.norm.moments import layout
from traindx.norm.reference import forward
from traindx.norm.spec import Axes, Groups, NormSpec, Window

SHAPE = (4, 6, 5, 7)
"""The input that sets are counted on: no two axes are alike."""


def _is_one_axis(axes: Axes) -> bool:
    """BatchNorm's way of naming its channels."""
    return axes.others and len(axes.named) == 1


def _moved_axis(a: NormSpec, b: NormSpec) -> Reach:
    """The same sets, if the input's axes are moved; else other ones."""
    same = _is_one_axis(a.reduced) and _is_one_axis(b.reduced)
    same |= a.kind == b.kind == "InstanceNorm"
    return Reach.LAYOUT if same else Reach.OUTPUT


@explains("kind", Reach.OUTPUT)
def kind(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """Another layer altogether."""
    return Said(
        say(
            "They are different layers, a {a} and a {b}: the other lines say what that means.",
            a=a.kind,
            b=b.kind,
        )
    )


@explains("reduced", Reach.OUTPUT, _moved_axis)
def reduced(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """The axes whose elements share statistics."""
    lines: list[Message] = []
    data: dict[str, Json] = {"shape": list(SHAPE)}
    for name, spec in zip(given.names, (a, b), strict=True):
        try:
            seen = layout(spec, SHAPE)
        except TraindxError:
            continue
        lines.append(
            say(
                "{name}: an input of shape {shape} has {sets} sets of {count} elements",
                name=name,
                shape=SHAPE,
                sets=seen.num_sets,
                count=seen.count,
            )
        )
        data[name] = {"sets": seen.num_sets, "elements": seen.count}
    if _moved_axis(a, b) is Reach.LAYOUT:
        effect = say(
            "The channels stand on another axis: the input must be laid out so, or other elements "
            "are normalized together, without an error where the extents happen to agree."
        )
    else:
        effect = say("Other elements share a mean and a variance: the outputs are others.")
    return Said(effect, lines, data)


def _affine_reach(a: NormSpec, b: NormSpec) -> Reach:
    return Reach.OUTPUT if a.affine is None or b.affine is None else Reach.LAYOUT


@explains("affine", Reach.LAYOUT, _affine_reach)
def affine(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """The axes of weight and bias."""
    if b.affine is None:
        return Said(say("The second has no weight and bias: those of the first are lost."))
    if a.affine is None:
        return Said(say("The second has a weight and a bias: give it 1 and 0."))
    return Said(say("Weight and bias vary along other axes: they must be laid out so."))


@explains("groups", Reach.OUTPUT)
def groups(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """Whether an axis is cut."""
    return Said(say("Only one cuts an axis into groups that are normalized apart."))


def _group(spec: NormSpec) -> Groups:
    assert spec.groups is not None, "asked for only where both have groups"
    return spec.groups


@explains("groups.axis", Reach.LAYOUT)
def group_axis(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """The axis that is cut."""
    return Said(say("The axis that is cut is another one: the channels must stand there."))


@explains("groups.count", Reach.OUTPUT)
def group_count(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """How many groups."""
    return Said(
        say(
            "A sample's channels are cut into {a} and into {b} groups (-1: each alone): other "
            "channels share statistics.",
            a=_group(a).count,
            b=_group(b).count,
        )
    )


@explains("groups.size", Reach.OUTPUT)
def group_size(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """How large a group is."""
    return Said(say("Parts of another size are normalized apart: their statistics are others."))


@explains("groups.order", Reach.OUTPUT)
def group_order(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """Which elements make a group."""
    numbers = {
        GroupOrder.BLOCKED: [0, 0, 0, 1, 1, 1],
        GroupOrder.INTERLEAVED: [0, 1, 0, 1, 0, 1],
    }
    one, other = (numbers[_group(spec).order] for spec in (a, b))
    lines = [
        say("six channels in two groups: {a}, and {b}", a=_digits(one), b=_digits(other)),
    ]
    effect = say(
        "Groups take neighbours, or every so many: reorder the channels, with every weight that "
        "reads or makes them, or the outputs are others."
    )
    return Said(effect, lines, {"groups": [list[Json](one), list[Json](other)]})


def _digits(numbers: list[int]) -> str:
    return " ".join(map(str, numbers))


@explains("groups.affine", Reach.LAYOUT)
def group_affine(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """Weights per group or per channel."""
    if _group(a).affine:
        return Said(say("Weight and bias hold a value a channel, not a group: repeat each."))
    return Said(
        say(
            "Weight and bias hold a value a group, not a channel: those that differ within a group "
            "are lost."
        )
    )


@explains("window", Reach.OUTPUT)
def window(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """Whether neighbours divide."""
    return Said(say("Only one divides each element by its neighbours."))


def _window(spec: NormSpec) -> Window:
    assert spec.window is not None, "asked for only where both have one"
    return spec.window


def _along(spec: NormSpec, x: Any) -> Array:
    """The output for `x` along the layer's own axis."""
    (axis,) = spec.reduced.named
    shape = [1, 1, 1]
    shape[axis] = -1
    return np.asarray(forward(spec, x.reshape(shape))).ravel()


def _windows(a: NormSpec, b: NormSpec, given: Given) -> Said:
    x = np.array([1.0, 2.0, 3.0])
    found = [_along(spec, x) for spec in (a, b)]
    lines = [
        say(
            "[1, 2, 3] becomes [{a}] and [{b}]",
            a=", ".join(f"{v:.4g}" for v in found[0]),
            b=", ".join(f"{v:.4g}" for v in found[1]),
        )
    ]
    effect = say(
        "The window takes {before_a} neighbours before an element and {after_a} after it, and "
        "{before_b} and {after_b}; the divisor is (k + alpha * sum of squares) ** beta with alpha "
        "{alpha_a:g}, beta {beta_a:g}, k {k_a:g}, and with alpha {alpha_b:g}, beta {beta_b:g}, "
        "k {k_b:g}.",
        before_a=_window(a).before,
        after_a=_window(a).after,
        before_b=_window(b).before,
        after_b=_window(b).after,
        alpha_a=_window(a).alpha,
        beta_a=_window(a).beta,
        k_a=_window(a).k,
        alpha_b=_window(b).alpha,
        beta_b=_window(b).beta,
        k_b=_window(b).k,
    )
    return Said(effect, lines, {"outputs": [one.tolist() for one in found]})


before = explains("window.before", Reach.OUTPUT)(_windows)
after = explains("window.after", Reach.OUTPUT)(_windows)
alpha = explains("window.alpha", Reach.OUTPUT)(_windows)
beta = explains("window.beta", Reach.OUTPUT)(_windows)
k = explains("window.k", Reach.OUTPUT)(_windows)


@explains("spectral", Reach.OUTPUT)
def spectral(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """Whether a singular value divides."""
    return Said(say("Only one divides by an estimate of the largest singular value."))


@explains("spectral.axis", Reach.LAYOUT)
def spectral_axis(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """The axis of the rows."""
    return Said(
        say("The weight's outputs stand on another axis: transpose it, and swap u and v with it.")
    )


@explains("spectral.iterations", Reach.TRAINING)
def iterations(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """Power iterations a step."""
    return Said(
        say("Other numbers of power iterations a step: the estimate follows the weight otherwise.")
    )


@explains("spectral.u_first", Reach.TRAINING)
def u_first(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """Which vector a power iteration computes first."""
    return Said(
        say(
            "A power iteration computes u first, or v first: both come to the same singular "
            "vectors, and differ until they have."
        )
    )
