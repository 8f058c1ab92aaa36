"""Typed JSON: a `Codec` is a pair of functions, and codecs are built from smaller ones.

Decoding is total: what it does not refuse with `MalformedError` has the type it promises. Unknown
keys are ignored and missing ones take the dataclass's default, so that fields can be added.
"""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, NoReturn, TypeVar

from traindx.facts import Json

MAX_CHARACTERS = 64 * 2**20
MAX_DEPTH = 32

T = TypeVar("T")
E = TypeVar("E", bound=Enum)


class MalformedError(ValueError):
    """A stored value is not what its place in the file calls for."""


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """How one type is written as JSON and read back."""

    encode: Callable[[T], Json]
    decode: Callable[[Json], T]

    def dumps(self, value: T) -> str:
        """The value as JSON text."""
        return json.dumps(self.encode(value), separators=(",", ":"))

    def loads(self, text: object) -> T:
        """The value of a JSON text.

        Raises:
            MalformedError: It is no JSON text, too large, or does not hold such a value.
        """
        if not isinstance(text, str) or len(text) > MAX_CHARACTERS:
            _refuse("JSON text", text)
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise MalformedError(f"expected JSON: {error}") from error
        return self.decode(value)


def _refuse(expected: str, value: object) -> NoReturn:
    raise MalformedError(f"expected {expected}, found {reprlib.repr(value)}")


# -- numbers, texts and what is made of them -----------------------------------------------------


def number(value: float) -> float | str:
    """The number as strict JSON can hold it: `"NaN"`, `"Infinity"` and `"-Infinity"` are texts."""
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


_NON_FINITE = {number(value): value for value in (math.nan, math.inf, -math.inf)}


def _real(value: Json) -> float:
    if isinstance(value, str) and value in _NON_FINITE:
        return _NON_FINITE[value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        _refuse("a number", value)
    try:
        return float(value)
    except OverflowError:
        _refuse("a number", value)


def _integer(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        _refuse("a whole number", value)
    return value


def _boolean(value: Json) -> bool:
    return value if isinstance(value, bool) else _refuse("true or false", value)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else _refuse("a text", value)


def _object(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else _refuse("an object", value)


def _shallow(value: Json, depth: int = 0) -> Json:
    """The value itself; too deep a nesting would overflow the stack of whoever walks it next."""
    if depth > MAX_DEPTH:
        _refuse(f"at most {MAX_DEPTH} levels", value)
    if isinstance(value, dict):
        children = [*value.values()]
    else:
        children = value if isinstance(value, list) else []
    for child in children:
        _shallow(child, depth + 1)
    return value


REAL = Codec(number, _real)
INTEGER: Codec[int] = Codec(int, _integer)
BOOLEAN: Codec[bool] = Codec(bool, _boolean)
TEXT: Codec[str] = Codec(str, _text)
JSON: Codec[Json] = Codec(_shallow, _shallow)


def optional(inner: Codec[T]) -> Codec[T | None]:
    """Null or the inner type."""
    return Codec(
        lambda value: None if value is None else inner.encode(value),
        lambda value: None if value is None else inner.decode(value),
    )


def many(inner: Codec[T]) -> Codec[tuple[T, ...]]:
    """An array, as a tuple."""

    def decode(value: Json) -> tuple[T, ...]:
        if not isinstance(value, list):
            _refuse("an array", value)
        return tuple(inner.decode(entry) for entry in value)

    return Codec(lambda values: [inner.encode(value) for value in values], decode)


def mapping(inner: Codec[T]) -> Codec[dict[str, T]]:
    """An object with any keys."""
    return Codec(
        lambda values: {key: inner.encode(value) for key, value in values.items()},
        lambda values: {key: inner.decode(value) for key, value in _object(values).items()},
    )


def choice(kind: type[E]) -> Codec[E]:
    """A member of an enumeration, by value."""

    def decode(value: Json) -> E:
        try:
            return kind(value)
        except ValueError:
            _refuse(f"a {kind.__name__.lower()}", value)

    return Codec(lambda member: member.value, decode)


def noun(cls: Callable[..., T], **fields: Codec[Any]) -> Codec[T]:
    """A dataclass or named tuple, field by field."""

    def decode(value: Json) -> T:
        found = _object(value)
        known = {name: inner.decode(found[name]) for name, inner in fields.items() if name in found}
        try:
            return cls(**known)
        except TypeError:  # a field without default is missing
            _refuse(f"every field of {cls.__name__}", value)

    return Codec(
        lambda value: {name: inner.encode(getattr(value, name)) for name, inner in fields.items()},
        decode,
    )
