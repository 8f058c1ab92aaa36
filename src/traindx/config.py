"""What a user has set: `[tool.traindx]` of a file, and the command line over it, in one `Config`.

Every bad value is told with the place it was written at, and the nearest name that there is.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

from traindx.baseline import read_baseline
from traindx.capture.cadence import BUDGET
from traindx.errors import UsageError
from traindx.findings import Severity
from traindx.languages import LANGUAGES
from traindx.messages import say
from traindx.rules.catalog import find
from traindx.rules.contexts import known
from traindx.rules.judging import Ignore, Judging, codes_of, ignoring
from traindx.rules.rule import Rule
from traindx.store.place import FOLDER

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Config:
    """Every setting; what nobody has set is as it is here.

    Attributes:
        select: Codes of the rules to apply; all if None.
        ignore: Findings to pass over.
        contexts: Names of declared contexts.
        baseline: A file with findings that are known.
        rules: Thresholds by code, then by option.
        every: Measure exactly every N-th step; None for the ladder with its budget.
        budget: Largest fraction of training time that measuring and listening may take.
        runs: Where run files go.
        trap_nan: Whether to replay the batch of a loss or gradient that is not finite.
        compiled_activations: Whether to run compiled models eagerly in measured steps, so that
            their activations are measured.
        first_weights: Whether run files have the weights of the first layer.
        fail_on: From which severity on to fail; None leaves it to the command.
        lang: Language of the reports; None leaves it to the environment.
        sources: Where each setting comes from that is not as it is here, by name.
    """

    select: frozenset[str] | None = None
    ignore: tuple[Ignore, ...] = ()
    contexts: tuple[str, ...] = ()
    baseline: Path | None = None
    rules: Mapping[str, Mapping[str, float]] = field(default_factory=dict[str, dict[str, float]])
    every: int | None = None
    budget: float = BUDGET
    runs: Path = FOLDER
    trap_nan: bool = False
    compiled_activations: bool = False
    first_weights: bool = True
    fail_on: Severity | None = None
    lang: str | None = None
    sources: Mapping[str, str] = field(default_factory=dict[str, str])

    def over(self, spelled: str = "--{}", /, **options: object) -> Config:
        """This with options of the command line in place of what the file says.

        Args:
            spelled: How an option is spelled where it was given, around its name.
            options: By name as in this class, as typed; those that are None were not given.

        Raises:
            UsageError: One of them is wrong.
        """
        given = {name: value for name, value in options.items() if value not in (None, [], ())}
        where = {name: spelled.format(_spelling(name, spelled)) for name in given}
        values = {
            name: _KEYS[name](_Place(where[name], Path()), value) for name, value in given.items()
        }
        return replace(self, **cast(Any, values), sources={**self.sources, **where})

    def judging(self) -> Judging:
        """What the engine needs of it.

        Raises:
            UsageError: The baseline cannot be read.
        """
        source = self.sources.get("contexts", "")
        return Judging(
            select=self.select,
            thresholds=self.rules,
            ignore=self.ignore,
            known=frozenset() if self.baseline is None else read_baseline(self.baseline),
            baseline=str(self.baseline or ""),
            contexts=tuple((name, source) for name in self.contexts),
        )


_OPTION_NAMES = {"contexts": "context"}
_ARGUMENT_NAMES = {"runs": "folder"}


def _spelling(name: str, spelled: str) -> str:
    """The name of an option, or of an argument of `watch`."""
    if spelled.startswith("--"):
        return _OPTION_NAMES.get(name, name.replace("_", "-"))
    return _ARGUMENT_NAMES.get(name, name)


def load(path: Path | None = None, folder: Path | None = None) -> Config:
    """The settings of a file.

    Args:
        path: A `pyproject.toml`, or a file of its own with the same keys at the top; the nearest
            `pyproject.toml` from `folder` upward if None. Without one everything is as by default.
        folder: Where to begin to look; the working directory if None.

    Raises:
        UsageError: It cannot be read, or something in it is wrong.
    """
    file = path or _nearest(folder.absolute() if folder else _here())
    if file is None:
        return Config()
    shown, table = _shown(file), _table(file)
    values: dict[str, object] = {}
    for key, value in table.items():
        place = _Place(f"`{shown}`, `{key}`", file.absolute().parent, shown)
        name = key.replace("-", "_")
        if name not in _KEYS or "_" in key:
            raise _unknown(shown, key, [each.replace("_", "-") for each in _KEYS])
        values[name] = _KEYS[name](place, value)
    return replace(Config(), **cast(Any, values), sources=dict.fromkeys(values, shown))


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        text = say("The working directory is gone; change to one that exists.")
        raise UsageError(text) from error


def _nearest(folder: Path) -> Path | None:
    files = (each / "pyproject.toml" for each in (folder, *folder.parents))
    return next((file for file in files if os.path.isfile(file)), None)  # a closed folder has none


def _shown(file: Path) -> str:
    """A file as a person would call it: relative to where they are, if it lies there."""
    here, there = _here(), file.absolute()
    return str(there.relative_to(here) if there.is_relative_to(here) else there)


def _table(file: Path) -> dict[str, object]:
    document = _parsed(file)
    if file.name != "pyproject.toml" and "tool" not in document:
        return document
    table = document
    for key in ("tool", "traindx"):
        table = _as_table(_Place(f"`{_shown(file)}`, `{key}`"), table.get(key, {}))
    return table


def _parsed(file: Path) -> dict[str, object]:
    toml: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    text = ""
    try:
        text = file.read_text(encoding="utf-8")
        return toml.loads(text)
    except OSError as error:
        message = say("Cannot read `{file}`: {why}.", file=_shown(file), why=error.strerror)
        raise UsageError(message) from error
    except (ValueError, RecursionError) as error:  # no TOML, no UTF-8, or brackets without end
        end = f"at line {text.count(chr(10)) + 1}, its end"
        why = str(error).replace("at end of document", end)
        message = say("`{file}` is not valid TOML: {why}.", file=_shown(file), why=why)
        raise UsageError(message) from error


# -- what each key takes -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value was written.

    Attributes:
        text: File and key, or the option, for messages.
        folder: What relative paths begin at.
        source: The file, or the option.
    """

    text: str
    folder: Path = Path()
    source: str = ""

    def at(self, key: str) -> _Place:
        """A key inside of it."""
        return replace(self, text=f"{self.text.removesuffix('`')}.{key}`")


def _select(place: _Place, value: object) -> frozenset[str]:
    words = _words(place, value)
    if not words:
        raise UsageError(
            say("{place} names no rule; leave it out to apply them all.", place=place.text)
        )
    return _told_at(place, lambda: codes_of(words))


def _ignore(place: _Place, value: object) -> tuple[Ignore, ...]:
    words = _words(place, value)
    source = place.source or place.text
    return _told_at(place, lambda: tuple(ignoring(word, source) for word in words))


def _contexts(place: _Place, value: object) -> tuple[str, ...]:
    words = _words(place, value)
    return _told_at(place, lambda: tuple(dict.fromkeys(known(word) for word in words)))


def _path(place: _Place, value: object) -> Path:
    if isinstance(value, str | Path) and str(value):
        return place.folder / value
    raise _wrong(place, say("a path"), value)


def _every(place: _Place, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise _wrong(place, say("a whole number from 1 on"), value)


def _budget(place: _Place, value: object) -> float:
    if (number := _number(value)) is not None and 0 <= number <= 1:
        return number
    raise _wrong(place, say("a number from 0 to 1"), value)


def _flag(place: _Place, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise _wrong(place, say("true or false"), value)


def _fail_on(place: _Place, value: object) -> Severity:
    return Severity(_one_of(place, value, [severity.value for severity in Severity]))


def _lang(place: _Place, value: object) -> str:
    return _one_of(place, value, list(LANGUAGES))


def _rules(place: _Place, value: object) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for word, options in _as_table(place, value).items():
        inside = place.at(word)
        rule = _told_at(place, lambda word=word: find(word))
        thresholds = found.setdefault(rule.code, {})
        for name, number in _as_table(inside, options).items():
            thresholds[name] = _threshold(inside, rule, name, number)
    return found


def _threshold(place: _Place, rule: Rule, name: str, value: object) -> float:
    default = rule.options.get(name)
    if default is None:
        if not rule.options:
            raise UsageError(
                say("{place}: {code} has no options.", place=place.text, code=rule.code)
            )
        raise _unknown(place.text, name, list(rule.options))
    number, place = _number(value), place.at(name)
    if number is None or not math.isfinite(number):
        raise _wrong(place, say("a finite number"), value)
    if name == "window" and number < 4:  # rules ask for so many measured steps
        raise _wrong(place, say("a number from 4 on"), value)
    if default >= 0 > number:
        raise _wrong(place, say("a number from 0 on"), value)
    if "fraction" in name and number > 1:
        raise _wrong(place, say("a number from 0 to 1"), value)
    return number


_KEYS: dict[str, Callable[[_Place, object], object]] = {
    "select": _select,
    "ignore": _ignore,
    "contexts": _contexts,
    "baseline": _path,
    "rules": _rules,
    "every": _every,
    "budget": _budget,
    "runs": _path,
    "trap_nan": _flag,
    "compiled_activations": _flag,
    "first_weights": _flag,
    "fail_on": _fail_on,
    "lang": _lang,
}


def _words(place: _Place, value: object) -> list[str]:
    """A list of words, or one text with commas between them."""
    parts = value.split(",") if isinstance(value, str) else value
    if isinstance(parts, list | tuple):
        words = list(cast("Iterable[object]", parts))
        if all(isinstance(word, str) for word in words):
            split = (part for word in cast("list[str]", words) for part in word.split(","))
            return [part.strip() for part in split if part.strip()]
    raise _wrong(place, say("a list of names in quotes"), value)


def _as_table(place: _Place, value: object) -> dict[str, object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value)
    raise _wrong(place, say("a table"), value)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if abs(value) > sys.float_info.max:  # TOML has whole numbers of any length
        return math.inf if value > 0 else -math.inf
    return float(value)


def _one_of(place: _Place, value: object, names: list[str]) -> str:
    word = value.value if isinstance(value, Severity) else value
    by_word = {name.casefold(): name for name in names}
    if isinstance(word, str) and word.casefold() in by_word:
        return by_word[word.casefold()]
    raise _wrong(place, say("one of {names}", names=", ".join(f'"{n}"' for n in names)), value)


# -- what is wrong -------------------------------------------------------------------------------


def _told_at(place: _Place, read: Callable[[], T]) -> T:
    try:
        return read()
    except UsageError as error:
        raise UsageError(say("{place}: {error}", place=place.text, error=error.args[0])) from error


def _wrong(place: _Place, contract: str, value: object) -> UsageError:
    came = ascii(value)
    came = came if len(came) <= 60 else f"{came[:57]}..."
    return UsageError(
        say(
            "{place} takes {contract}; it is {value}.",
            place=place.text,
            contract=contract,
            value=came,
        )
    )


def _unknown(place: str, key: str, names: list[str]) -> UsageError:
    (nearest,) = get_close_matches(key.casefold(), names, n=1, cutoff=0.0)
    place = place if place.startswith(("`", "-")) else f"`{place}`"
    return UsageError(
        say(
            "{place} knows no key `{key}`; the nearest is `{nearest}`.",
            place=place,
            key=key,
            nearest=nearest,
        )
    )
