"""Weight and bias: what acts on the normalized elements, and the gradients it receives."""

from __future__ import annotations

from traindx.errors import ArgumentError
from traindx.messages import say
from traindx.norm.arrays import Array, ArrayLike, gathered, namespace, read, spread
from traindx.norm.choices import GroupOrder
from traindx.norm.spec import Axes, Groups, NormSpec


def affine(
    spec: NormSpec, normalized: Array, weight: ArrayLike | None, bias: ArrayLike | None
) -> Array:
    """`normalized` times the weight, and its offset, plus the bias."""
    scaled = weighted(spec, normalized, weight)
    return scaled if bias is None else scaled + parameter(spec, "bias", bias, normalized)


def weighted(spec: NormSpec, values: Array, weight: ArrayLike | None) -> Array:
    """`values` times the weight, and its offset."""
    if weight is None:
        return values
    factor = parameter(spec, "weight", weight, values)
    return values * (factor + spec.weight_offset if spec.weight_offset else factor)


def parameter(spec: NormSpec, name: str, values: ArrayLike, like: Array) -> Array:
    """A weight or bias, shaped to broadcast against the input `like`."""
    axes = _axes(spec, name)
    if spec.groups is None or not spec.groups.affine:
        return spread(name, values, like, axes)
    channels = like.shape[spec.groups.axis]
    parts, _ = spec.groups.cut(channels)
    given = read(f"`{name}`", values, like=like)
    if tuple(given.shape) != (parts,):
        raise ArgumentError(
            say(
                "`{name}` needs one value a group for {parts} groups; got shape "
                "{given}. Pass {parts} values.",
                name=name,
                parts=parts,
                given=tuple(given.shape),
            )
        )
    return spread(name, per_channel(spec.groups, given, channels), like, axes)


def gathered_parameter(spec: NormSpec, name: str, values: Array) -> Array:
    """The gradient of a weight or bias, from its part in every element."""
    summed = gathered(values, _axes(spec, name))
    if spec.groups is None or not spec.groups.affine:
        return summed
    xp, (parts, size) = namespace(values), spec.groups.cut(summed.shape[0])
    if spec.groups.order is GroupOrder.BLOCKED:
        return xp.sum(xp.reshape(summed, (parts, size)), axis=1)
    return xp.sum(xp.reshape(summed, (size, parts)), axis=0)


def per_channel(groups: Groups, values: Array, channels: int) -> Array:
    """Values given one a group, one for each channel."""
    xp, (parts, size) = namespace(values), groups.cut(channels)
    blocked = groups.order is GroupOrder.BLOCKED
    table = xp.reshape(values, (parts, 1) if blocked else (1, parts))
    shape = (parts, size) if blocked else (size, parts)
    return xp.reshape(xp.broadcast_to(table, shape), (channels,))


def _axes(spec: NormSpec, name: str) -> Axes:
    if spec.affine is None:
        raise ArgumentError(
            say("{kind} has no {name}; got one. Leave it out.", kind=spec.kind, name=name)
        )
    return spec.affine
