"""What a check is, where all of them are, and what they find."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from importlib import import_module

from traindx.findings import Severity
from traindx.messages import Message, say
from traindx.norm.audit import checks
from traindx.norm.audit.facts import Subject


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing a check has found.

    Attributes:
        fqn: The layer; empty for the model as a whole.
        message: What is wrong, with its number.
        fix: What to do.
        numbers: The numbers behind it.
        severity: Overrides the check's own.
    """

    fqn: str
    message: Message
    fix: Message
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])
    severity: Severity | None = None


class Needs(str, Enum):
    """What a check cannot do without."""

    NOTHING = "nothing"
    MODEL = "model"
    BATCH = "batch"
    DATA = "data"


Look = Callable[[Subject], Iterator[Hit]]


@dataclass(frozen=True, slots=True)
class Check:
    """One check.

    Attributes:
        name: Kebab-case.
        severity: Of its hits, unless they say otherwise.
        needs: What it cannot do without.
        look: The decorated function; its docstring says what it is about, and where it is known
            from.
    """

    name: str
    severity: Severity
    needs: Needs
    look: Look

    @property
    def summary(self) -> str:
        """The first sentence of its documentation."""
        return (inspect.getdoc(self.look) or "").partition("\n\n")[0].replace("\n", " ")


@dataclass(frozen=True, slots=True)
class Found:
    """A hit with the check that has it."""

    check: str
    severity: Severity
    hit: Hit


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit has to say.

    Attributes:
        subject: What was looked at.
        found: The hits, most severe first.
        checked: Names of the checks that could look.
        unchecked: The others, each with its reason.
    """

    subject: Subject
    found: tuple[Found, ...]
    checked: tuple[str, ...]
    unchecked: tuple[tuple[str, Message], ...]


def check(name: str, severity: Severity, needs: Needs = Needs.NOTHING) -> Callable[[Look], Check]:
    """Make a check of a function."""
    return lambda look: Check(name, severity, needs, look)


@cache
def every_check() -> tuple[Check, ...]:
    """Every check there is, by name."""
    found: list[Check] = []
    for info in pkgutil.iter_modules(checks.__path__):
        module = import_module(f"{checks.__name__}.{info.name}")
        found += [value for value in vars(module).values() if isinstance(value, Check)]
    return tuple(sorted(found, key=lambda each: each.name))


def audit(subject: Subject) -> Audit:
    """Look with every check that can."""
    found: list[Found] = []
    unchecked: list[tuple[str, Message]] = []
    for each in every_check():
        reason = _missing(each, subject)
        if reason is not None:
            unchecked.append((each.name, reason))
            continue
        found += [
            Found(each.name, hit.severity or each.severity, hit) for hit in each.look(subject)
        ]
    names = {name for name, _ in unchecked}
    checked = tuple(each.name for each in every_check() if each.name not in names)
    found.sort(key=lambda one: one.severity.rank)
    return Audit(subject, tuple(found), checked, tuple(unchecked))


def _missing(each: Check, subject: Subject) -> Message | None:
    if each.needs is not Needs.NOTHING and not subject.live:
        return say("a checkpoint does not tell; name the model, as `file.py:name`")
    if each.needs is Needs.BATCH and not subject.batch:
        return say("there is no batch; give one, or its `--shape`")
    if each.needs is Needs.DATA and (subject.random or not subject.batch):
        return say("there is no batch of the model's data; `return model, batch`")
    return None
