"""What a rule is: a decorated function; its docstring is the page, its keywords the options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from traindx.findings import Evidence, Severity
from traindx.run import Run

Check = Callable[..., Iterable[Evidence]]
"""Looks at a run up to its last complete step and yields a hit for each site it finds at fault
there. It looks back only, so that live and offline evaluation agree."""

Applies = Callable[[Run], str]
"""The reason, in a few words, why a rule says nothing of a run; empty if it applies."""

Source = Literal["passive", "probe", "fork", "ranks"]


def always(_run: Run) -> str:
    """The rule applies wherever what it reads was measured."""
    return ""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the catalogue.

    Attributes:
        code: Family letter and three digits, never reused.
        name: Kebab-case; reads well in "allow *name*".
        severity: Of its findings, unless the evidence says otherwise.
        reads: Quantities it needs; it is not evaluated if none of them was measured.
        source: What feeds it.
        check: The decorated function.
        hits: Measured steps at which it is asked, one after another, that it must hit before it
            is a finding (hysteresis).
        lasting: Whether what it speaks of is there for a while, so that it may rest between steps
            that are measured one after another. One that looks for what the next step may take
            away is asked after each.
        applies: Why it does not apply to a run, if so.
        silent_in: Names of the contexts in which a hit means nothing.
        explained_by: Codes whose finding in the same model explains one of this rule.
        remedies: Names of the remedies that answer it.
        lifecycle: `preview`, `stable`, `deprecated` or `removed`.
    """

    code: str
    name: str
    severity: Severity
    reads: tuple[str, ...]
    source: Source
    check: Check
    hits: int = 1
    lasting: bool = False
    applies: Applies = always
    silent_in: tuple[str, ...] = ()
    explained_by: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    lifecycle: str = "preview"

    @property
    def page(self) -> str:
        """Its documentation in Markdown, starting with the one-sentence summary."""
        return inspect.getdoc(self.check) or ""

    @property
    def summary(self) -> str:
        """The first sentence of its page."""
        return self.page.partition("\n\n")[0].replace("\n", " ")

    @property
    def options(self) -> dict[str, float]:
        """Its thresholds: the keyword arguments of the function and their defaults."""
        parameters = inspect.signature(self.check).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}

    def section(self, title: str) -> str:
        """The text under `## title` of its page, empty if there is none."""
        _, found, rest = self.page.partition(f"## {title}\n")
        return rest.partition("\n## ")[0].strip() if found else ""


def rule(
    code: str,
    *,
    severity: Severity,
    reads: tuple[str, ...],
    source: Source = "passive",
    hits: int = 1,
    lasting: bool = False,
    applies: Applies = always,
    silent_in: tuple[str, ...] = (),
    explained_by: tuple[str, ...] = (),
    remedies: tuple[str, ...] = (),
    lifecycle: str = "preview",
) -> Callable[[Check], Rule]:
    """Make a rule of a function; its name in kebab-case is the rule's name."""

    def decorate(check: Check) -> Rule:
        return Rule(
            code=code,
            name=check.__name__.replace("_", "-"),
            severity=severity,
            reads=reads,
            source=source,
            check=check,
            hits=hits,
            lasting=lasting,
            applies=applies,
            silent_in=silent_in,
            explained_by=explained_by,
            remedies=remedies,
            lifecycle=lifecycle,
        )

    return decorate
