"""What is learnt of one layer: what explains it, the findings, and how its answers compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np

from traindx.errors import ArgumentError
from traindx.findings import Severity
from traindx.norm.conformance.kinds import KINDS, Kind, shortened
from traindx.norm.conformance.naming import Difference
from traindx.norm.conformance.precision import rounded
from traindx.norm.conformance.target import Answer, Call, Target, ask
from traindx.norm.conformance.truth import Deviation, answered, deviations, truth
from traindx.norm.spec import NormSpec


class Verdict(str, Enum):
    """How an answer stands to the truth, from best to worst."""

    EXACT = "exact"
    """The true value rounded once to the type of the answer, in every place."""
    ROUNDING = "rounding"
    """Within what rounding may do to such an input."""
    SEMANTIC = "semantic"
    """Something else than was expected."""
    NON_FINITE = "non-finite"
    """NaN or infinite where the truth is a number."""
    RAISES = "raises"
    """An error where the truth is a number."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One named difference of one layer.

    Attributes:
        layer: As its framework spells it.
        kind: Its family.
        part: Where it shows: default, asked, forward, backward, running, evaluation, edge, type.
        difference: What it is.
        severity: An error is no answer to what was asked; a warning loses data or precision
            somewhere; an info is a convention.
        verdict: How the answer stands to the truth.
        call: A question that shows it.
        aspect: Which array of the answer shows it; empty if none does.
        expected: The specification that the answer is held against.
        seen: How many questions show it.
    """

    layer: str
    kind: str
    part: str
    difference: Difference
    severity: Severity
    verdict: Verdict
    call: Call
    aspect: str
    expected: NormSpec
    seen: int = 1


@dataclass(slots=True)
class Study:
    """What is known of one layer of a target so far.

    Attributes:
        target: Whose layer it is.
        layer: Its name there.
        kind: Its family.
        spec: What explains it so far.
        findings: What was found.
        verdicts: How many arrays came out how.
        lacks: What could not be asked, with the reason.
        unexplained: Whether its defaults could not be explained, so that no more is asked.
        short: Whether its options are kept in float32, which shows in float64.
        narrow: Whether it computes float64 in float32.
    """

    target: Target
    layer: str
    kind: Kind
    spec: NormSpec
    findings: list[Finding] = field(default_factory=list[Finding])
    verdicts: dict[Verdict, int] = field(default_factory=dict[Verdict, int])
    lacks: dict[str, str] = field(default_factory=dict[str, str])
    unexplained: bool = False
    short: bool = False
    narrow: bool = False

    def expected(self, dtype: str) -> NormSpec:
        """What explains it so far, for an input of `dtype`."""
        return shortened(self.spec) if self.short and dtype == "float64" else self.spec

    @classmethod
    def begun(cls, target: Target, layer: str) -> Study:
        """A study that expects the baseline."""
        kind = KINDS[target.layers[layer]]
        return cls(target, layer, kind, kind.spec)

    def ask(self, what: str, call: Call) -> Answer | None:
        """The target's answer; None, and noted, where it has no words for the question."""
        answer = ask(self.target, call)
        if answer.lacks:
            self.lacks.setdefault(what, answer.lacks)
            return None
        return answer

    def compare(
        self, call: Call, answer: Answer, spec: NormSpec | None = None
    ) -> dict[str, Deviation]:
        """How far an answer is from the truth, each array counted by its verdict."""
        expected, call = spec or self.expected(call.dtype), self.computed(call)
        found = deviations(expected, call, answer)
        right, got = truth(expected, call), answered(call, answer)
        for name, one in found.items():
            once = rounded(right[name].value, call.dtype)
            exact = got[name].shape == once.shape and np.array_equal(got[name], once)
            self.count(Verdict.EXACT if exact else verdict(one))
        return found

    def computed(self, call: Call) -> Call:
        """The question, of the type that it is computed in."""
        return call.where(dtype="float32") if self.narrow and call.dtype == "float64" else call

    def count(self, one: Verdict) -> None:
        """Add one array to those with this verdict."""
        self.verdicts[one] = self.verdicts.get(one, 0) + 1

    def find(
        self,
        part: str,
        difference: Difference,
        severity: Severity,
        verdict: Verdict,
        call: Call,
        *,
        aspect: str = "forward",
        expected: NormSpec | None = None,
    ) -> None:
        """Note a difference; the same one again only adds to the questions that show it."""
        for i, known in enumerate(self.findings):
            if known.part == part and known.difference == difference:
                self.findings[i] = replace(known, seen=known.seen + 1)
                return
        self.findings.append(
            Finding(
                self.layer,
                self.kind.name,
                part,
                difference,
                severity,
                verdict,
                call,
                aspect,
                expected or self.spec,
            )
        )

    def found(self, name: str) -> bool:
        """Whether there is a difference of this name."""
        return any(finding.difference.name == name for finding in self.findings)


Stage = Callable[[Study], None]
"""A part of the examination: asks, and notes what it finds."""


def verdict(one: Deviation) -> Verdict:
    """The verdict that a deviation amounts to."""
    if one.ratio <= 1:
        return Verdict.ROUNDING
    return Verdict.NON_FINITE if one.lost else Verdict.SEMANTIC


def defined(spec: NormSpec, call: Call) -> bool:
    """Whether the layer has an output for such an input."""
    try:
        truth(spec, call)
    except ArgumentError:
        return False
    return True
