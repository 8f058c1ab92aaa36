"""Arrays of any library of the array API standard, read as float64 and checked.

The library of the input is the library of the answer. An array has no static type that all of them
share, so `Array` says only what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import array_api_compat
import numpy as np

from traindx.errors import ArgumentError
from traindx.messages import say
from traindx.norm.spec import Axes

Array: TypeAlias = Any
"""An array of NumPy, torch or another library that keeps the standard."""
ArrayLike: TypeAlias = Any
"""Such an array, or nested sequences of numbers."""

INPUT = say("the input")
"""What messages call it."""


def namespace(array: Array) -> Any:
    """The functions of the library that `array` belongs to."""
    return cast("Any", array_api_compat).array_namespace(array)


def is_array(values: object) -> bool:
    """Whether `values` is an array already, and not numbers in sequences."""
    return bool(cast("Any", array_api_compat).is_array_api_obj(values))


def read(name: str, values: ArrayLike, *, like: Array | None = None, finite: bool = True) -> Array:
    """`values` in float64: in the library and on the device of `like`, if there is one."""
    array = _float64(name, values) if like is None else _float64_like(name, values, like)
    if finite:
        refuse_non_finite(name, array)
    return array


def refuse_non_finite(name: str, array: Array) -> None:
    """Raise at the first element of `array` that is no finite number."""
    xp = namespace(array)
    finite = xp.isfinite(array)
    if not bool(xp.all(finite)):
        place = tuple(int(indices[0]) for indices in xp.nonzero(~finite)) if array.ndim else ()
        raise ArgumentError(
            say(
                "Normalization needs finite numbers for {name}; got {value} at "
                "index {place}. One such element spoils its whole statistic: find "
                "where it comes from, or remove it.",
                name=name,
                value=float(array[place]),
                place=place,
            )
        )


def spread(name: str, values: ArrayLike, like: Array, axes: Axes) -> Array:
    """Values given along `axes`, shaped to broadcast against `like`."""
    shape = tuple(like.shape)
    along = axes.of(len(shape))
    wanted = tuple(shape[axis] for axis in along)
    given = read(f"`{name}`", values, like=like)
    if tuple(given.shape) != wanted:
        raise ArgumentError(
            say(
                "`{name}` needs shape {wanted} for an input of shape {shape}; got "
                "{given}. Pass one value for each index of axes {axes}.",
                name=name,
                wanted=wanted,
                shape=shape,
                given=tuple(given.shape),
                axes=along,
            )
        )
    extents = tuple(n if axis in along else 1 for axis, n in enumerate(shape))
    return namespace(like).reshape(given, extents)


def gathered(values: Array, axes: Axes) -> Array:
    """The sum of `values` over all axes but `axes`: what `spread` undoes a gradient to."""
    xp = namespace(values)
    along = axes.of(values.ndim)
    others = tuple(axis for axis in range(values.ndim) if axis not in along)
    return xp.sum(values, axis=others) if others else values


def total(values: Array, axes: Sequence[int]) -> Array:
    """The sum over `axes`, kept with extents 1."""
    return namespace(values).sum(values, axis=tuple(axes), keepdims=True) if axes else values


def _float64(name: str, values: ArrayLike) -> Array:
    if is_array(values):
        xp = namespace(values)
        if xp.isdtype(values.dtype, "complex floating"):
            raise _unreadable(name, say("the numbers are complex"))
        return xp.astype(values, xp.float64)
    try:
        if np.iscomplexobj(values):
            raise TypeError(say("the numbers are complex"))
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise _unreadable(name, error) from error


def _float64_like(name: str, values: ArrayLike, like: Array) -> Array:
    given, xp = _float64(name, values), namespace(like)
    if namespace(given) is xp:
        return given
    device = cast("Any", array_api_compat).device(like)
    # Through a list: a library need not read the arrays of another. An empty one loses its shape.
    numbers = xp.asarray(given.tolist(), dtype=xp.float64, device=device)
    return xp.reshape(numbers, tuple(given.shape))


def _unreadable(name: str, why: object) -> ArgumentError:
    return ArgumentError(
        say(
            "Normalization needs an array of real numbers for {name}; got what "
            "NumPy cannot read as one ({why}). Pass numbers in rows of equal "
            "length.",
            name=name,
            why=why,
        )
    )
