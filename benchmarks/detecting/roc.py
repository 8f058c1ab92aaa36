"""What a threshold trades: how often a rule finds its faults and accuses healthy runs, as it moves.

Kept run files are judged again by the one rule, with one option multiplied by each factor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.detecting.bounds import Rate, rate
from benchmarks.detecting.programs import Program
from benchmarks.detecting.running import Outcome
from benchmarks.detecting.scoring import right_codes
from benchmarks.detecting.tables import table

FACTORS = (1 / 16, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 16.0)


@dataclass(frozen=True, slots=True)
class Point:
    """One value of a threshold.

    Attributes:
        value: Of the option.
        is_default: Whether it is what the rule has.
        found: Runs of the rule's own faults that it speaks in.
        accused: Healthy runs that it speaks in.
    """

    value: float
    is_default: bool
    found: Rate
    accused: Rate


def curve(
    code: str, option: str, some: Iterable[Program], outcomes: Iterable[Outcome]
) -> list[Point]:
    """A rule's points for one of its options, from the runs that were kept."""
    from traindx.rules.catalog import find

    rule = find(code)
    mode = "run" if rule.source == "passive" else "preflight"
    of = {(program.name, program.digest): program for program in some}
    faults: list[Path] = []
    well: list[Path] = []
    for outcome in outcomes:
        program = of.get((outcome.program, outcome.digest))
        if program is None or outcome.mode != mode or not outcome.store:
            continue
        if not program.is_fault or outcome.twin:
            well.append(Path(outcome.store))
        elif program.expects in right_codes(code):
            faults.append(Path(outcome.store))
    values = [rule.options[option] * factor for factor in FACTORS]
    found = [spoken(path, code, option, values) for path in faults]
    accused = [spoken(path, code, option, values) for path in well]
    return [
        Point(
            value, factor == 1.0, rate([hit[i] for hit in found]), rate([hit[i] for hit in accused])
        )
        for i, (value, factor) in enumerate(zip(values, FACTORS, strict=True))
    ]


def spoken(path: Path, code: str, option: str, values: Sequence[float]) -> list[bool]:
    """For each value of an option, whether the rule has more than information to say of a run."""
    from traindx.rules.catalog import find
    from traindx.rules.engine import Engine
    from traindx.store.reader import Stored

    engines = [Engine([find(code)], {code: {option: value}}) for value in values]
    for stretch in Stored(path):
        for engine in engines:
            engine.replay(stretch)
    for engine in engines:
        engine.close()
    return [any(f.severity.value != "info" for f in e.verdict.findings) for e in engines]


def curves(
    words: Sequence[str], some: Sequence[Program], outcomes: Sequence[Outcome]
) -> Iterator[str]:
    """A table for each option of each rule; a word is `CODE` or `CODE.option`."""
    from traindx.rules.catalog import find

    for word in words:
        code, _, named = word.partition(".")
        for option in [named] if named else find(code).options:
            rows = [
                [f"{point.value:g}{' (default)' * point.is_default}", point.found, point.accused]
                for point in curve(code, option, some, outcomes)
            ]
            head = (option, "found in its faults", "said of healthy runs")
            yield f"#### {code} `{option}`\n\n{table(head, rows)}"
