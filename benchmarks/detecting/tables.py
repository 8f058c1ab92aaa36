"""The tables of what was detected, as Markdown, and the numbers of each rule as data."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any

from benchmarks.detecting.bounds import Rate, rate
from benchmarks.detecting.scoring import VIEWS, Judged

Runs = Sequence[Judged]


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *([str(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def faulty(runs: Runs) -> list[Judged]:
    """Those with something to find."""
    return [run for run in runs if run.is_faulty]


def healthy(runs: Runs) -> list[Judged]:
    """Those with nothing to find: healthy programs and repaired twins."""
    return [run for run in runs if not run.is_faulty]


def by_program(runs: Runs, holds: Callable[[Judged], bool], *, every: bool) -> Rate:
    """In how many programs something holds: in all their runs if `every`, else in any."""
    each: dict[tuple[str, bool], list[bool]] = defaultdict(list)
    for run in runs:
        each[run.program.name, run.twin].append(holds(run))
    return rate([(all if every else any)(outcomes) for outcomes in each.values()])


def detection_row(runs: Runs) -> list[object]:
    """What became of faulty runs."""
    scores = [run.score for run in runs]
    placed = [score.placed for score in scores if score.placed is not None]
    steps = [score.step for score in scores if score.step is not None]
    return [
        len({run.program.name for run in runs}),
        rate([score.found for score in scores]),
        rate([score.first for score in scores]),
        by_program(runs, lambda run: run.score.first, every=True),
        rate(placed),
        f"{median(steps):g}" if steps else "-",
    ]


DETECTION = (
    *("programs", "found", "right cause first", "first in all runs of a program", "right place"),
    "median first step",
)


def detection(views: dict[str, Runs]) -> str:
    """What was found in faulty programs: by view, by group and by half."""
    rows: list[list[object]] = []
    for view in VIEWS:
        runs = faulty(views.get(view, ()))
        for group in ("normalization and mode", "all others", "all"):
            for half in ("calibration", "test"):
                part = [
                    run
                    for run in runs
                    if group in (run.program.group, "all") and run.program.half == half
                ]
                if part:
                    rows.append([view, group, half, *detection_row(part)])
    return table(("seen by", "faults", "half", *DETECTION), rows)


def kinds(runs: Runs) -> str:
    """What was found by kind of fault."""
    part: dict[str, list[Judged]] = defaultdict(list)
    for run in faulty(runs):
        part[run.program.kind or "-"].append(run)
    return table(("kind", *DETECTION), ([k, *detection_row(part[k])] for k in sorted(part)))


def false_alarms(views: dict[str, Runs]) -> str:
    """What healthy programs were accused of."""
    head = ("seen by", "half", "runs", "errors a run", "warnings a run", "runs with an error")
    rows: list[list[object]] = []
    for view in VIEWS:
        for half in ("calibration", "test"):
            runs = [r for r in healthy(views.get(view, ())) if r.program.half == half]
            if runs:
                rows.append([view, half, *alarm_row(runs)])
    return table((*head, "programs with an error", "programs with a warning"), rows)


def alarm_row(runs: Runs) -> list[object]:
    """What became of healthy runs."""
    errors = [len(run.alarms.errors) for run in runs]
    warnings = [len(run.alarms.warnings) for run in runs]
    return [
        len(runs),
        f"{sum(errors) / len(runs):.3f}",
        f"{sum(warnings) / len(runs):.3f}",
        rate([count > 0 for count in errors]),
        by_program(runs, lambda run: bool(run.alarms.errors), every=False),
        by_program(runs, lambda run: bool(run.alarms.warnings), every=False),
    ]


def of_rules(runs: Runs, codes: Iterable[str]) -> dict[str, dict[str, Any]]:
    """By code: what became of the faults it should name, and of the healthy runs."""
    well = healthy(runs)
    expecting: dict[str, list[Judged]] = defaultdict(list)
    for run in faulty(runs):
        expecting[run.program.expects].append(run)
    told: dict[str, dict[str, Any]] = {}
    for code in sorted({*codes, *expecting}):
        told[code] = {**_found(expecting[code]), **_accused(code, well)}
    return told


def _found(runs: Runs) -> dict[str, Any]:
    scores = [run.score for run in runs]
    return {
        "programs": len({run.program.name for run in runs}),
        "runs": len(scores),
        "found": sum(score.found for score in scores),
        "first": sum(score.first for score in scores),
    }


def _accused(code: str, well: Runs) -> dict[str, Any]:
    def alarms(run: Judged) -> bool:
        return code in (*run.alarms.errors, *run.alarms.warnings)

    runs, programs = rate([alarms(run) for run in well]), by_program(well, alarms, every=False)
    return {
        "healthy_runs": runs.total,
        "false_alarms": runs.hits,
        "alarm_bound": round(runs.highest(), 4),
        "healthy_programs": programs.total,
        "alarmed_programs": programs.hits,
        "program_bound": round(programs.highest(), 4),
    }


def rules(told: dict[str, dict[str, Any]]) -> str:
    """The numbers of each rule that has a fault of its own, or accused somebody."""
    spoken = {code: it for code, it in told.items() if it["runs"] or it["false_alarms"]}
    rows = [
        [
            code,
            it["programs"],
            Rate(it["found"], it["runs"]),
            Rate(it["first"], it["runs"]),
            f"{it['false_alarms']}/{it['healthy_runs']}",
            f"{it['alarm_bound']:.1%}",
            f"{it['program_bound']:.1%}",
        ]
        for code, it in spoken.items()
    ]
    head = ("rule", "faults", "found", "right cause first", "false alarms, healthy runs")
    silent = ", ".join(code for code in told if code not in spoken) or "none"
    return (
        table((*head, "below, by run", "below, by program"), rows)
        + f"\nNo fault, and no word to a healthy run: {silent}.\n"
    )


def misses(runs: Runs) -> str:
    """Each fault that was not, or not always, the first thing named, with what was said instead."""
    part: dict[str, list[Judged]] = defaultdict(list)
    for run in faulty(runs):
        part[run.program.name].append(run)
    rows: list[list[object]] = []
    for name, some in sorted(part.items()):
        scores = [run.score for run in some]
        if all(score.first and score.placed is not False for score in scores):
            continue
        leads = Counter(score.lead or "nothing" for score in scores if not score.first)
        said = ", ".join(f"{lead} ({count})" for lead, count in leads.most_common())
        found = f"{sum(score.found for score in scores)}/{len(scores)}"
        placed = [score.placed for score in scores if score.placed is not None]
        where = f"{sum(placed)}/{len(placed)}" if placed else "-"
        expects = f"{some[0].program.expects} {some[0].program.place}".strip()
        rows.append([name.removeprefix("faults/"), expects, found, where, said or "-"])
    return table(("program", "expects", "found", "right place", "first root instead"), rows)


def accused(runs: Runs) -> str:
    """Each healthy run that was accused of something."""
    rows = [
        [f"{run.program.name}{' --healthy' * run.twin}", run.seed, *_codes(run)]
        for run in healthy(runs)
        if run.alarms.errors or run.alarms.warnings
    ]
    return table(("program", "seed", "errors", "warnings"), sorted(rows, key=str))


def _codes(run: Judged) -> tuple[str, str]:
    return " ".join(run.alarms.errors) or "-", " ".join(run.alarms.warnings) or "-"
