"""The result of an examination as plain data, and of several beside each other.

What is here is JSON and comes back from it: each target may have been examined in a process of its
own, since a process has one backend of Keras and a framework may take others down with it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from traindx.errors import ArgumentError, DataError
from traindx.findings import Severity
from traindx.messages import say
from traindx.norm.conformance.precision import Numbers
from traindx.norm.conformance.program import WITHOUT, program
from traindx.norm.conformance.shrink import shrunk
from traindx.norm.conformance.study import Finding, Study, Verdict
from traindx.norm.conformance.target import Target, ask
from traindx.norm.conformance.truth import answered, truth

SCHEMA = 1
_SHOWN = 8
"""Numbers of an output that are shown."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One difference as it is shown.

    Attributes:
        layer: As its framework spells it.
        part: Where it shows.
        name: Its short name.
        text: What it is.
        severity: How bad it is.
        verdict: How the answer stands to the truth.
        seen: How many questions showed it.
        aspect: Which array shows it.
        shape: Of the smallest input found.
        got: The first numbers of what came.
        expected: The first numbers of what should have come.
        program: A program that shows both; empty if there is nothing to show.
    """

    layer: str
    part: str
    name: str
    text: str
    severity: str
    verdict: str
    seen: int
    aspect: str
    shape: tuple[int, ...]
    got: tuple[float | str, ...]
    expected: tuple[float | str, ...]
    program: str

    @property
    def rank(self) -> int:
        """Less is worse."""
        return Severity(self.severity).rank


@dataclass(frozen=True, slots=True)
class LayerResult:
    """One layer of a target.

    Attributes:
        layer: As its framework spells it.
        kind: Its family.
        verdicts: How many arrays came out how.
        lacks: What could not be asked, with the reason.
        unexplained: Whether its defaults could not be explained, so that no more was asked.
    """

    layer: str
    kind: str
    verdicts: Mapping[str, int]
    lacks: Mapping[str, str]
    unexplained: bool


@dataclass(frozen=True, slots=True)
class TargetResult:
    """One target.

    Attributes:
        name: On the command line.
        version: Of what answered.
        layers: Its layers.
        differences: All that was found, the worst first.
    """

    name: str
    version: str
    layers: tuple[LayerResult, ...]
    differences: tuple[Shown, ...]

    def of(self, layer: str) -> tuple[Shown, ...]:
        """The differences of one layer."""
        return tuple(one for one in self.differences if one.layer == layer)


@dataclass(frozen=True, slots=True)
class Matrix:
    """Several targets beside each other.

    Attributes:
        targets: Those that were examined.
        missing: Those that are not there, with what to do about it.
    """

    targets: tuple[TargetResult, ...]
    missing: Mapping[str, str]

    @property
    def worst(self) -> Severity | None:
        """The worst severity of all; None if nothing was found."""
        found = [one for target in self.targets for one in target.differences]
        return Severity(min(found, key=lambda one: one.rank).severity) if found else None


def result(target: Target, studies: Sequence[Study]) -> TargetResult:
    """An examination as data: every difference shrunk, with the numbers and its program."""
    found = [_shown(target, finding) for study in studies for finding in study.findings]
    return TargetResult(
        target.name,
        target.version,
        tuple(_layer(study) for study in studies),
        tuple(sorted(found, key=lambda one: one.rank)),
    )


def document(matrix: Matrix) -> str:
    """The matrix as JSON; numbers that are not finite are strings."""
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "targets": [asdict(target) for target in matrix.targets],
        "not_installed": dict(matrix.missing),
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def parsed(text: str) -> Matrix:
    """The matrix that a document holds.

    Raises:
        DataError: It holds none.
    """
    try:
        content = json.loads(text)
        if content["schema"] != SCHEMA:
            raise KeyError("schema")
        targets = tuple(_target(one) for one in content["targets"])
        return Matrix(targets, dict(content["not_installed"]))
    except (KeyError, TypeError, ValueError, RecursionError) as error:  # or brackets without end
        raise DataError(
            say("This is no conformance document of schema {schema}.", schema=SCHEMA)
        ) from error


def merged(parts: Iterable[Matrix]) -> Matrix:
    """Several matrices as one."""
    several = list(parts)
    missing = {name: why for part in several for name, why in part.missing.items()}
    return Matrix(tuple(target for part in several for target in part.targets), missing)


def worst_verdict(layer: LayerResult) -> Verdict:
    """The worst verdict that one of its arrays had; exact if none was compared."""
    order = list(Verdict)
    return max((Verdict(name) for name in layer.verdicts), key=order.index, default=Verdict.EXACT)


def _target(given: Mapping[str, Any]) -> TargetResult:
    return TargetResult(
        given["name"],
        given["version"],
        tuple(LayerResult(**layer) for layer in given["layers"]),
        tuple(
            replace(Shown(**one), **{key: tuple(one[key]) for key in ("shape", "got", "expected")})
            for one in given["differences"]
        ),
    )


def _layer(study: Study) -> LayerResult:
    verdicts = {verdict.value: count for verdict, count in study.verdicts.items()}
    lacks = {str(what): str(why) for what, why in study.lacks.items()}
    return LayerResult(study.layer, study.kind.name, verdicts, lacks, study.unexplained)


def _shown(target: Target, finding: Finding) -> Shown:
    small = shrunk(target, finding)
    nothing = ((), ())
    got, expected = nothing if small.difference.name in WITHOUT else _numbers(target, small)
    return Shown(
        finding.layer,
        finding.part,
        finding.difference.name,
        str(finding.difference.text),
        finding.severity.value,
        finding.verdict.value,
        finding.seen,
        finding.aspect,
        small.call.x.shape,
        got,
        expected,
        program(target, small),
    )


def _numbers(
    target: Target, finding: Finding
) -> tuple[tuple[float | str, ...], tuple[float | str, ...]]:
    answer = ask(target, finding.call)
    got = answered(finding.call, answer).get(finding.aspect) if answer.given else None
    try:
        right = truth(finding.expected, finding.call).get(finding.aspect)
    except ArgumentError:
        right = None
    return _first(got), _first(None if right is None else right.value)


def _first(values: Numbers | None) -> tuple[float | str, ...]:
    if values is None:
        return ()
    some = np.ravel(values)[:_SHOWN].tolist()
    return tuple(value if math.isfinite(value) else str(value) for value in some)
