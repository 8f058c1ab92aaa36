"""What traindx finds in the zoo: every fault, its healthy twin and the healthy programs, by seed.

    python benchmarks/detection.py [--seeds N] [--half calibration|test] [--only NAME ...]
                                   [--jobs N] [--resume] [--results FILE] [--keep FOLDER]
                                   [--modes run preflight] [--roc CODE[.OPTION] ...]
                                   [--reveal] [--write]

Each program is watched by `traindx run` and probed by `traindx preflight --quick`, in forked
workers; a line is written as each run ends, so that `--resume` goes on where it was stopped. It
runs again what was changed since, and what had no verdict. `--keep` keeps the run files, which
`--roc` judges again with other thresholds. `--write` puts the tables into docs/detection.md and the
rules' pages. The test half is told in totals only, unless `--reveal` asks for it rule by rule.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.detecting import roc
from benchmarks.detecting.programs import HALVES, ROOT, Program, programs, source_hash
from benchmarks.detecting.report import Report, write
from benchmarks.detecting.running import MODES, Job, Outcome, jobs, line, outcomes, read, warm_up

RESULTS = ROOT / "traindx-runs" / "detection.jsonl"


def main(words: Sequence[str] | None = None) -> int:
    """Run what is asked for, then tell what came of it."""
    options = parsed(words)
    chosen = [program for program in programs() if is_chosen(program, options)]
    wanted = jobs(chosen, range(options.seeds), options.modes)
    known = read(options.results) if options.resume or not options.jobs else []
    if options.jobs:
        known = run(wanted, known, options)
    keys = {job.key for job in wanted}
    command = " ".join(
        ["python benchmarks/detection.py", *(sys.argv[1:] if words is None else words)]
    )
    seen = list({outcome.key: outcome for outcome in known if outcome.key in keys}.values())
    report = Report(chosen, seen, options.reveal, command)
    extra = "\n".join(roc.curves(options.roc, chosen, seen))
    print(report.text())
    print(extra)
    if options.write:
        write(report, extra)
        subprocess.run([sys.executable, ROOT / "scripts" / "docs.py"], check=True)
    return 0


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description="What traindx finds in the zoo.")
    parser.add_argument("--seeds", type=int, default=1, help="how many, from 0 on")
    parser.add_argument("--half", choices=HALVES, help="one half; both by default")
    parser.add_argument("--only", nargs="*", help="programs whose name has one of these in it")
    parser.add_argument("--modes", nargs="*", choices=MODES, default=list(MODES))
    parser.add_argument("--jobs", type=int, default=2, help="workers; 0 only tells what is known")
    parser.add_argument("--resume", action="store_true", help="go on with the results file")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--keep", type=Path, help="a folder for the run files")
    parser.add_argument(
        "--roc",
        nargs="*",
        default=[],
        help="rules, or one option of each, whose thresholds are moved",
    )
    parser.add_argument("--reveal", action="store_true", help="tell the test half by rule, too")
    parser.add_argument("--write", action="store_true", help="write docs/detection.md")
    return parser.parse_args(words)


def is_chosen(program: Program, options: argparse.Namespace) -> bool:
    """Whether a program is asked for."""
    named = not options.only or any(word in program.name for word in options.only)
    return named and options.half in (None, program.half)


def run(wanted: list[Job], known: list[Outcome], options: argparse.Namespace) -> list[Outcome]:
    """Run what is not known yet, or had no verdict; returns all that is known then."""
    done = {outcome.key for outcome in known if not outcome.failure}
    missing = [job for job in wanted if job.key not in done]
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    warm_up()
    source = source_hash()
    keep = options.keep and options.keep.absolute()
    fresh: list[Outcome] = []
    options.results.parent.mkdir(parents=True, exist_ok=True)
    with options.results.open("a" if options.resume else "w", encoding="utf-8") as file:
        for job, outcome in outcomes(missing, options.jobs, source, keep):
            fresh.append(outcome)
            file.write(line(outcome))
            file.flush()
            place = f"{len(fresh)}/{len(missing)}"
            twin = " --healthy" * job.twin
            blind = job.program.half == "test" and not options.reveal
            found = "done" if blind else f"{len(outcome.findings)} findings"
            said = "FAILED" if outcome.failure else found
            print(
                f"{place} {job.mode} {job.program.name}{twin} {job.seed}: {said}", file=sys.stderr
            )
    return known + fresh


if __name__ == "__main__":
    sys.exit(main())
