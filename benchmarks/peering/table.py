"""What other tools found in the zoo as tables, and what traindx did, counted in the same way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.detecting import running as detecting
from benchmarks.detecting.bounds import Rate, rate
from benchmarks.detecting.programs import APART, HALVES, ROOT, Program, split_hash
from benchmarks.detecting.scoring import right_codes
from benchmarks.detecting.tables import table
from benchmarks.peering.builtin_rules import LEFT_OUT, SIMPLE
from benchmarks.peering.running import Outcome
from benchmarks.peering.tools import TOOLS

PAGE = ROOT / "docs" / "peers.md"
MARK = "<!-- benchmarks/peers.py: what follows is written by it -->"
OURS = {("run",): "traindx run", ("preflight", "run"): "traindx run and preflight"}


@dataclass(frozen=True, slots=True)
class Seen:
    """One run under one tool.

    Attributes:
        program: Which.
        seed: Of its random numbers.
        twin: Whether it was the repaired one.
        alarms: By what was said: the places that were named.
        failed: Whether the tool failed or ended the program.
    """

    program: Program
    seed: int
    twin: bool
    alarms: dict[str, frozenset[str]]
    failed: bool = False

    @property
    def is_faulty(self) -> bool:
        """Whether there is something to find."""
        return self.program.is_fault and not self.twin

    @property
    def is_placed(self) -> bool:
        """Whether any alarm names the place of the fault: it, or a parameter of it."""
        place = self.program.place
        named = {site for sites in self.alarms.values() for site in sites}
        return any(place in (site, site.rpartition(".")[0]) for site in named)

    @property
    def is_right(self) -> bool:
        """Whether the cause that is expected is named, which only traindx can."""
        return bool(self.alarms.keys() & right_codes(self.program.expects))

    def only(self, codes: Iterable[str]) -> Seen:
        """The same, if only these alarms had been asked for."""
        kept = {code: self.alarms[code] for code in codes if code in self.alarms}
        return Seen(self.program, self.seed, self.twin, kept, self.failed)


@dataclass(frozen=True, slots=True)
class Report:
    """All that was run, ready to be told.

    Attributes:
        programs: Those that were meant to be run.
        seeds: Their seeds.
        outcomes: Of other tools.
        found: Of traindx.
        missing: Why a tool was not run.
        command: How it was made.
    """

    programs: Sequence[Program]
    seeds: Sequence[int]
    outcomes: Sequence[Outcome]
    found: Sequence[detecting.Outcome]
    missing: dict[str, str]
    command: str

    def runs(self) -> dict[str, list[Seen]]:
        """Every run by the title of the tool, traindx first."""
        told = {title: self._ours(modes) for modes, title in OURS.items()}
        for name, tool in TOOLS.items():
            told[tool.title] = self._theirs(name)
            if name == "debugger":
                told["SageMaker's group for PyTorch"] = [it.only(SIMPLE) for it in told[tool.title]]
        return {title: runs for title, runs in told.items() if runs}

    def _known(self) -> dict[tuple[str, str], Program]:
        return {(program.name, program.digest): program for program in self.programs}

    def _theirs(self, name: str) -> list[Seen]:
        known, last = self._known(), {it.key: it for it in self.outcomes if it.tool == name}
        return [
            Seen(
                known[it.program, it.digest],
                it.seed,
                it.twin,
                {code: frozenset(said["sites"]) for code, said in it.alarms.items()},
                bool(it.failure),
            )
            for it in last.values()
            if (it.program, it.digest) in known and it.seed in self.seeds
        ]

    def _ours(self, modes: tuple[str, ...]) -> list[Seen]:
        """Errors and warnings of all the modes of a run."""
        known = self._known()
        by_run: dict[tuple[str, str, int, bool], dict[str, detecting.Outcome]] = defaultdict(dict)
        for it in self.found:
            if (it.program, it.digest) in known and it.seed in self.seeds and it.mode in modes:
                by_run[it.key[:4]][it.mode] = it
        seen: list[Seen] = []
        for (name, digest, seed, twin), parts in by_run.items():
            said: dict[str, frozenset[str]] = defaultdict(frozenset)
            for finding in (finding for part in parts.values() for finding in part.findings):
                if finding["severity"] != "info":
                    said[finding["code"]] |= {finding["site"], *finding["layers"]}
            failed = any(part.failure for part in parts.values())
            if len(parts) == len(modes):
                seen.append(Seen(known[name, digest], seed, twin, dict(said), failed))
        return seen

    def text(self) -> str:
        """Everything below the marker."""
        runs = self.runs()
        left_out = "; ".join(f"{rule}, which {why}" for rule, why in LEFT_OUT.items())
        versions = sorted({f"{it.tool} {it.version}" for it in self.outcomes})
        parts = [
            f"`{self.command}`: {sum(p.is_fault for p in self.programs)} faults and "
            f"{sum(not p.is_fault for p in self.programs)} healthy programs, seeds "
            f"{', '.join(map(str, self.seeds))}. Split `{split_hash(self.programs)[:16]}`. "
            f"Versions, torch's where a tool has none: {', '.join(versions) or 'none'}.\n",
            *[f"Not run: {TOOLS[name].title}, {why}.\n" for name, why in self.missing.items()],
            f"Rules of SageMaker Debugger that are left out: {left_out}.\n",
            "### All faults\n",
            overall(runs, lambda program: True),
            "### Faults of normalization and mode\n",
            overall(runs, lambda program: program.kind in APART or not program.is_fault),
            "### By alarm\n",
            by_alarm({title: it for title, it in runs.items() if title not in OURS.values()}),
        ]
        return "\n".join(parts)


HEAD = (
    *("tool", "half", "any alarm", "an alarm its twin has not", "right place"),
    *("right cause", "healthy runs with an alarm", "failed"),
)


def overall(runs: dict[str, list[Seen]], counts: Callable[[Program], bool]) -> str:
    """What each tool said of faulty and of healthy runs, by half."""
    rows: list[list[object]] = []
    for title, some in runs.items():
        for half in HALVES:
            part = [it for it in some if it.program.half == half and counts(it.program)]
            if part:
                rows.append([title, half, *row(part, ours=title in OURS.values())])
    return table(HEAD, rows)


def row(runs: Sequence[Seen], *, ours: bool) -> list[object]:
    """The shares of one tool in one half."""
    faulty = [it for it in runs if it.is_faulty]
    return [
        rate([bool(it.alarms) for it in faulty]),
        apart(runs),
        rate([it.is_placed for it in faulty if it.program.place]),
        rate([it.is_right for it in faulty]) if ours else "-",
        rate([bool(it.alarms) for it in runs if not it.is_faulty]),
        sum(it.failed for it in runs),
    ]


def apart(runs: Iterable[Seen], code: str = "") -> Rate:
    """How many faulty runs have an alarm, or this one, that their repaired twins have not."""
    pairs: dict[tuple[str, int], dict[bool, Seen]] = defaultdict(dict)
    for it in runs:
        if it.program.is_fault:
            pairs[it.program.name, it.seed][it.twin] = it
    both = [(pair[False], pair[True]) for pair in pairs.values() if len(pair) == 2]
    more = [fault.alarms.keys() - twin.alarms.keys() for fault, twin in both]
    return rate([code in codes if code else bool(codes) for codes in more])


def by_alarm(runs: dict[str, list[Seen]]) -> str:
    """How often each alarm was given, in both halves."""
    rows = [
        [
            *(title, code),
            rate([code in it.alarms for it in some if it.is_faulty]),
            apart(some, code),
            rate([code in it.alarms for it in some if not it.is_faulty]),
        ]
        for title, some in runs.items()
        for code in sorted({code for it in some for code in it.alarms})
    ]
    return table(("tool", "alarm", "faults", "and not their twins", "healthy runs"), rows)


def write(report: Report, page: Path = PAGE) -> None:
    """Put the report into the page, behind its marker.

    Raises:
        ValueError: The page has no marker.
    """
    before, mark, _ = page.read_text(encoding="utf-8").partition(MARK)
    if not mark:
        raise ValueError(f"{page} needs the line {MARK!r}")
    page.write_text(f"{before}{mark}\n\n{report.text()}", encoding="utf-8")
