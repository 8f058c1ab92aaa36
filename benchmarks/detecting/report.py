"""The page of the benchmark, below the marker of docs/detection.md, and what rules' pages tell."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.detecting import tables
from benchmarks.detecting.bounds import rate
from benchmarks.detecting.programs import APART, HALVES, ROOT, Program, split_hash
from benchmarks.detecting.running import Outcome
from benchmarks.detecting.scoring import SAME_CAUSE, TOGETHER, VIEWS, Judged, views

PAGE = ROOT / "docs" / "detection.md"
RULES = ROOT / "benchmarks" / "results" / "detection.json"
MARK = "<!-- benchmarks/detection.py: what follows is written by it -->"


@dataclass(frozen=True, slots=True)
class Report:
    """All that was run, ready to be told.

    Attributes:
        programs: Those that were meant to be run.
        outcomes: Of every run, in both modes.
        reveal: Whether the test half is told program by program, and rule by rule; only its totals
            if not, so that nobody can tune a rule to it.
        command: How it was made.
    """

    programs: Sequence[Program]
    outcomes: Sequence[Outcome]
    reveal: bool
    command: str

    def judged(self) -> dict[str, list[Judged]]:
        """The runs of each view."""
        return {view: views(self.programs, self.outcomes, view)[0] for view in VIEWS}

    def told(self, runs: Sequence[Judged], half: str) -> list[Judged]:
        """Those of a half that may be told one by one."""
        return [r for r in runs if r.program.half == half and (self.reveal or half == HALVES[0])]

    def head(self) -> str:
        """What was run, and what it can be known by."""
        names = {(p.name, p.digest) for p in self.programs}
        mine = [outcome for outcome in self.outcomes if (outcome.program, outcome.digest) in names]
        sources = sorted({outcome.source[:12] for outcome in mine})
        seeds = sorted({outcome.seed for outcome in mine})
        by_half = ", ".join(
            f"{sum(p.half == half and p.is_fault for p in self.programs)} faults and "
            f"{sum(p.half == half and not p.is_fault for p in self.programs)} healthy programs "
            f"in the {half} half"
            for half in HALVES
        )
        changed = " (it changed on the way)" if len(sources) > 1 else ""
        failed = sum(bool(outcome.failure) for outcome in mine)
        return (
            f"`{self.command}`: {by_half}; {len(mine)} runs with seeds "
            f"{', '.join(map(str, seeds))}, {failed} of them without a verdict. "
            f"Split `{split_hash(self.programs)[:16]}`, traindx `{' '.join(sources)}`{changed}.\n"
        )

    def text(self) -> str:
        """Everything below the marker."""
        judged = self.judged()
        together = judged[TOGETHER]
        same = "; ".join(" and ".join(sorted(codes)) for codes in SAME_CAUSE)
        parts = [
            self.head(),
            f"One cause under two codes counts as one: {same}. In brackets: exact 95 % bounds.\n",
            "### Faults\n",
            tables.detection(dict(judged)),
            as_drawn(together),
            "### Healthy programs and repaired twins\n",
            tables.false_alarms(dict(judged)),
        ]
        for half in HALVES:
            runs = [run for run in together if run.program.half == half]
            if runs:
                parts += [f"### By kind, {half} half\n", tables.kinds(runs)]
        for half in HALVES:
            runs = self.told(together, half)
            if runs:
                parts += [
                    f"### By rule, {half} half\n",
                    tables.rules(tables.of_rules(runs, codes())),
                    f"### Not found, or not first, {half} half\n",
                    tables.misses(runs),
                    f"### Said of healthy runs, {half} half\n",
                    tables.accused(runs),
                ]
        return "\n".join(parts)

    def by_program(self) -> str:
        """What each program is known by."""
        rows = [[p.name, p.half, p.digest[:16]] for p in self.programs]
        return "### The programs\n\n" + tables.table(("program", "half", "SHA-256"), rows)

    def rules(self) -> dict[str, Any]:
        """The numbers for the rules' pages, from the calibration half or from both."""
        runs = [run for half in HALVES for run in self.told(self.judged()[TOGETHER], half)]
        halves = [half for half in HALVES if self.reveal or half == HALVES[0]]
        seeds = len({run.seed for run in runs})
        return {"halves": halves, "seeds": seeds, "rules": tables.of_rules(runs, codes())}


def as_drawn(runs: Sequence[Judged]) -> str:
    """What is found in the test half as the names alone draw it; first seeds only.

    Programs that were missed are what one looks at: without them a test half looks better.
    """
    drawn = [r for r in runs if r.is_faulty and r.seed == 0 and r.program.drawn == HALVES[1]]
    apart = [run for run in drawn if run.program.kind in APART]
    said = "; ".join(
        f"{name}: {rate([r.score.found for r in some])} found, "
        f"{rate([r.score.first for r in some])} right cause first"
        for name, some in (("all", drawn), ("normalization and mode", apart))
    )
    return f"With those of `LOOKED_AT` that their names put there, test half, seed 0: {said}.\n"


def codes() -> list[str]:
    """Every rule's code."""
    from traindx.rules.catalog import catalog

    return list(catalog())


def write(report: Report, extra: str, page: Path = PAGE, rules: Path = RULES) -> None:
    """Put the report into the page, behind its marker, and the numbers of rules into their file."""
    text = page.read_text(encoding="utf-8")
    before, mark, _ = text.partition(MARK)
    if not mark:
        raise ValueError(f"{page} needs the line {MARK!r}")
    body = "\n".join((report.text(), extra, report.by_program()))
    page.write_text(f"{before}{mark}\n\n{body}", encoding="utf-8")
    rules.write_text(json.dumps(report.rules(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
