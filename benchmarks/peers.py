"""What other tools find in the zoo, beside traindx.

    python benchmarks/peers.py [--tools NAME ...] [--seeds N] [--half calibration|test]
                               [--only NAME ...] [--first N] [--jobs N] [--resume]
                               [--results FILE] [--detection FILE] [--write]

Every program runs under each tool that is installed, in forked workers; a line is written for each
tool as a run ends, so that `--resume` goes on where it was stopped. What traindx finds is read from
the results of benchmarks/detection.py. `--write` puts the tables into docs/peers.md. Programs of
the test half are told in totals only.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.detecting import running as detecting
from benchmarks.detecting.programs import HALVES, ROOT, Program, programs
from benchmarks.peering.running import Job, Outcome, jobs, outcomes, read
from benchmarks.peering.table import Report, write
from benchmarks.peering.tools import TOOLS

RESULTS = ROOT / "traindx-runs" / "peers.jsonl"
DETECTION = ROOT / "traindx-runs" / "detection.jsonl"


def main(words: Sequence[str] | None = None) -> int:
    """Run what is asked for, then tell what came of it."""
    options = parsed(words)
    chosen = sorted(programs(), key=lambda program: program.digest)
    chosen = [program for program in chosen if is_chosen(program, options)][: options.first]
    known = read(options.results) if options.resume or not options.jobs else []
    if options.jobs:
        installed = [name for name in options.tools if not TOOLS[name].missing()]
        known = known + run(jobs(chosen, range(options.seeds), installed, known), options)
    missing = {name: TOOLS[name].missing() for name in options.tools if TOOLS[name].missing()}
    told = {name for name in options.tools if any(it.tool == name for it in known)}
    command = " ".join(["python benchmarks/peers.py", *(sys.argv[1:] if words is None else words)])
    report = Report(
        chosen,
        range(options.seeds),
        [outcome for outcome in known if outcome.tool in options.tools],
        detecting.read(options.detection),
        {name: why for name, why in missing.items() if name not in told},
        command,
    )
    print(report.text())
    if options.write:
        write(report)
    return 0


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description="What other tools find in the zoo.")
    parser.add_argument("--tools", nargs="*", choices=list(TOOLS), default=list(TOOLS))
    parser.add_argument("--seeds", type=int, default=1, help="how many, from 0 on")
    parser.add_argument("--half", choices=HALVES, help="one half; both by default")
    parser.add_argument("--only", nargs="*", help="programs whose name has one of these in it")
    parser.add_argument("--first", type=int, help="so many programs, in the order of their hashes")
    parser.add_argument("--jobs", type=int, default=1, help="workers; 0 only tells what is known")
    parser.add_argument("--resume", action="store_true", help="go on with the results file")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--detection", type=Path, default=DETECTION, help="what traindx found")
    parser.add_argument("--write", action="store_true", help="write docs/peers.md")
    return parser.parse_args(words)


def is_chosen(program: Program, options: argparse.Namespace) -> bool:
    """Whether a program is asked for."""
    named = not options.only or any(word in program.name for word in options.only)
    return named and options.half in (None, program.half)


def run(wanted: list[Job], options: argparse.Namespace) -> list[Outcome]:
    """Run what is not known yet; returns what came of it."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    fresh: list[Outcome] = []
    options.results.parent.mkdir(parents=True, exist_ok=True)
    with options.results.open("a" if options.resume else "w", encoding="utf-8") as file:
        for place, (job, said) in enumerate(outcomes(wanted, options.jobs), start=1):
            fresh += said
            file.writelines(map(detecting.line, said))
            file.flush()
            twin = " --healthy" * job.twin
            named = f"{job.program.name}{twin} {job.seed}" if is_open(job) else "(test half)"
            spoke = ", ".join(it.tool for it in said if it.alarms) or "nothing"
            heard = f": {spoke}" if is_open(job) else ""
            print(f"{place}/{len(wanted)} {job.tools[0]} {named}{heard}", file=sys.stderr)
    return fresh


def is_open(job: Job) -> bool:
    """Whether a program may be told of by itself."""
    return job.program.half == HALVES[0]


if __name__ == "__main__":
    sys.exit(main())
