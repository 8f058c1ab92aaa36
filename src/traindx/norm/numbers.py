"""Arrays as people write them: inline, as CSV, as `.npy`, and a layer's options as words."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from traindx.errors import UsageError
from traindx.messages import say
from traindx.norm.choices import Estimator
from traindx.norm.passes import RunningStats
from traindx.norm.presets import find_preset, preset
from traindx.norm.spec import NormSpec
from traindx.norm.spectral import PowerVectors

_LARGEST = 100_000
"""Elements of an array at most: every number of a trace is printed."""

_WORDS = {"none": None, "true": True, "false": False}

Numbers = NDArray[np.float64]


def array(text: str) -> Numbers:
    """The array that is meant: `1,2;3,0`, `[[1, 2], [3, 0]]`, `x.csv`, `x.npy`.

    Raises:
        UsageError: It is none, or too large to be shown.
    """
    if text.lstrip().startswith("["):
        found = _of_json(text)
    elif text.endswith((".npy", ".csv", ".tsv", ".txt")):
        found = _of_file(Path(text))
    else:
        found = _of_rows(text, [row.replace(",", " ").split() for row in text.split(";")])
    if found.size > _LARGEST:
        raise UsageError(
            say(
                "A trace shows every number, of {most} at most; `{text}` has {count}. Give a part.",
                most=_LARGEST,
                text=_short(text),
                count=found.size,
            )
        )
    return found


def optional(text: str | None) -> Numbers | None:
    """The array that is meant, if any is."""
    return None if text is None else array(text)


def running(
    mean: str | None, var: str | None, batches: int, *, u: str | None, v: str | None
) -> RunningStats | PowerVectors | None:
    """What a layer remembers, if anything is given.

    Raises:
        UsageError: Only a half of it is given.
    """
    if (u is None) != (v is None) or (mean is None) != (var is None):
        raise UsageError(
            say("Running statistics are a mean and a variance, and power vectors are u and v.")
        )
    if u is not None and v is not None:
        return PowerVectors(array(u), array(v))
    if mean is not None and var is not None:
        return RunningStats(array(mean), _variance(var), batches)
    return None


def _variance(text: str) -> Numbers:
    found = array(text)
    if (found < 0).any():
        raise UsageError(say("A running variance is 0 or more; got {least:g}.", least=found.min()))
    return found


def spec(name: str, options: Sequence[str]) -> NormSpec:
    """A preset with options like `eps=1e-3`, each read as the preset's default is.

    Raises:
        UsageError: An option is not `NAME=VALUE`.
        ArgumentError: There is no such preset, or it has no such option.
    """
    known = find_preset(name).options
    chosen: dict[str, Any] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not (key and equals):
            raise UsageError(
                say("An option is `NAME=VALUE`, as `eps=1e-3`; got {text}.", text=repr(option))
            )
        # An InstanceNorm that tracks nothing has no estimator to tell the kind of its option by.
        default = Estimator.BIASED if key == "variance" else known.get(key)
        chosen[key] = _value(value, default)
    try:
        return preset(name, **chosen)
    except TypeError as error:
        raise UsageError(
            say(
                "The options {options} do not make a {name}: {why}.",
                options=" ".join(options),
                name=name,
                why=error,
            )
        ) from error


def _value(text: str, default: object) -> Any:
    if isinstance(default, Enum):
        kind = type(default)
        for member in kind:
            if text.lower() in (str(member.value), member.name.lower()):
                return member
        known = ", ".join(member.name.lower() for member in kind)
        raise UsageError(say("{text} is none of {known}.", text=repr(text), known=known))
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    with suppress(ValueError):
        return float(text)
    return text


def _of_json(text: str) -> Numbers:
    try:
        return _as_array(json.loads(text))
    except (ValueError, TypeError, RecursionError) as error:
        raise _unreadable(text, error) from error


def _of_file(file: Path) -> Numbers:
    try:
        if file.suffix == ".npy":
            return _of_npy(file)
        with file.open(newline="", encoding="utf-8-sig") as lines:
            delimiter = "\t" if file.suffix == ".tsv" else ","
            rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
    except OSError as error:
        raise UsageError(
            say("Cannot read `{file}`: {why}.", file=file, why=error.strerror or error)
        ) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise _unreadable(str(file), error) from error
    return _of_rows(str(file), rows)


def _of_npy(file: Path) -> Numbers:
    try:
        # Memory-mapped first: the header of a hostile file may promise more than there is memory.
        mapped = np.lib.format.open_memmap(file, mode="r")
        if mapped.size > _LARGEST:
            return cast(Numbers, mapped)  # refused by its size
        if mapped.dtype.kind not in "fiub":
            raise TypeError(f"it holds {mapped.dtype}")
        return np.array(mapped, dtype=np.float64)
    except (ValueError, TypeError, EOFError) as error:
        raise _unreadable(str(file), error) from error


def _of_rows(text: str, rows: Sequence[Sequence[str]]) -> Numbers:
    if not any(rows):
        raise _unreadable(text, "it is empty")
    try:
        found = _as_array([[float(cell) for cell in row] for row in rows])
    except ValueError as error:
        raise _unreadable(text, error) from error
    return found[0] if len(rows) == 1 else found


def _as_array(numbers: object) -> Numbers:
    try:
        return np.asarray(numbers, dtype=np.float64)
    except ValueError as error:  # numpy's own sentence is about its insides
        uneven = "inhomogeneous" in str(error)
        raise (ValueError("its rows differ in length") if uneven else error) from error


def _unreadable(text: str, why: object) -> UsageError:
    return UsageError(
        say(
            "`{text}` is no array of numbers ({why}). Write rows as `1,2;3,0`, JSON as "
            "`[[1, 2], [3, 0]]`, or name a .csv or .npy file.",
            text=_short(text),
            why=why,
        )
    )


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
