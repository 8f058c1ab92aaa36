"""What watching costs: the same training bare and watched, in turns, with other tools beside it.

    python benchmarks/overhead.py [PROGRAM ...] [--full] [--peers] [--markdown] [--repeats N]
                                  [--settings NAME ...] [--seconds S] [--threads N]

Each setting trains in a process of its own and waits while another has its turn. Every block of its
steps stands between two of the bare training and is compared with their median, so that what slows
the machine for a while slows both sides. Steps that are measured and steps that are not have
medians of their own, joined in the proportion of the long run; `quiet CPU` takes the quietest tenth
of all steps in place of the medians of turns; `all in` is the sum over all steps
seen, the first ones and the end included. `bare again` says what all of that reads where there is
nothing to be seen. CPU time is that of the process: a tool's servers and other processes are left
out. A ratio is followed by the quartiles over the turns.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.costs.measure import Cost, Ratio, Trial, cost, in_turns
from benchmarks.costs.peers import CHOICES, PEERS, installed
from benchmarks.costs.programs import PROGRAMS
from benchmarks.costs.settings import BARE, OURS, QUICK
from benchmarks.costs.table import markdown, number, plain

HEAD = (
    "setting", "CPU", "quartiles", "quiet CPU", "wall", "unmeasured step", "measured step",
    "one in", "all in", "steps", "MiB over bare", "kB a step", "target",
)  # fmt: skip
DEFAULT_TARGET = 1.03
TOLERANCE = 1.3
"""By how much of itself a budget may be exceeded."""
LADDER_STEPS = 400
"""Steps of a setting with a budget in a full run: it is enforced from step 200 on."""


def target(program: str, setting: str) -> float | None:
    """The largest ratio aimed at, if there is one."""
    if setting == "every":
        return PROGRAMS[program].every_step
    budget = CHOICES[setting].budget
    if setting == "default":
        return DEFAULT_TARGET
    return None if budget is None else 1 + TOLERANCE * budget


def row(program: str, setting: str, trial: Trial, bare_peak: int) -> list[str]:
    """One row of the table."""
    title = CHOICES[setting].title
    found = cost(trial)
    if found is None:
        return [title, trial.failed or "nothing seen", *[""] * (len(HEAD) - 2)]
    return [title, *_numbers(found, bare_peak), verdict(found.cpu, target(program, setting))]


def _numbers(found: Cost, bare_peak: int) -> list[str]:
    low, high = number(found.cpu.low), number(found.cpu.high)
    return [
        number(found.cpu.middle),
        f"{low}-{high}",
        number(found.quiet),
        number(found.wall.middle),
        number(found.unmeasured),
        number(found.measured),
        str(found.every),
        number(found.total),
        str(found.steps),
        f"{(found.ending.peak - bare_peak) / 2**20:+.0f}",
        f"{found.ending.written / found.steps / 1000:.1f}",
    ]


def verdict(ratio: Ratio, aim: float | None) -> str:
    """Whether an aim was kept, which turns that disagree (or a single one) cannot tell."""
    if aim is None:
        return ""
    decided = ratio.low < ratio.high and not ratio.low <= aim <= ratio.high
    word = "undecided" if not decided else "kept" if ratio.high <= aim else "missed"
    return f"{aim:.3f} {word}"


def print_table(
    program: str, trials: dict[str, Trial], missing: Sequence[str], *, as_markdown: bool
) -> None:
    """Print what was found for one program."""
    known = [found for trial in trials.values() if (found := cost(trial))]
    again = cost(trials["again"]) if "again" in trials else None
    peak = again.ending.peak if again else 0
    bare = 1000 * known[0].bare if known else float("nan")
    rows = [row(program, name, trial, peak) for name, trial in trials.items()]
    rows += [[CHOICES[name].title, "not installed", *[""] * (len(HEAD) - 2)] for name in missing]
    noise = f"; noise {again.cpu.low:.3f}-{again.cpu.high:.3f}" if again else ""
    print(f"\n{'### ' if as_markdown else ''}{PROGRAMS[program].title}\n")
    print(f"Bare: {bare:.2f} ms of CPU time a step{noise}.\n")
    print((markdown if as_markdown else plain)(HEAD, rows), flush=True)


def conditions(threads: int) -> str:
    """What the machine was like."""
    import torch

    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"torch {torch.__version__}, {threads} thread(s), {os.cpu_count()} CPUs, "
        f"{platform.machine()}, load {load}"
    )


def main() -> None:
    """Parse, measure and print."""
    parser = argparse.ArgumentParser(description="What watching costs.")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS))
    parser.add_argument("--full", action="store_true", help="all settings, and long enough")
    parser.add_argument("--peers", action="store_true", help="other tools, too")
    parser.add_argument("--settings", nargs="+", choices=[*CHOICES], help="only these")
    parser.add_argument("--repeats", type=int, help="turns of each setting")
    parser.add_argument("--seconds", type=float, default=0.2, help="about what a turn takes bare")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    if unknown := [name for name in options.programs if name not in PROGRAMS]:
        parser.error(f"no such program: {unknown[0]}")
    names = [name for name in (OURS if options.full else QUICK) if name != BARE]
    wanted = [*(options.settings or [*names, *(PEERS if options.peers else ())])]
    present = [name for name in wanted if installed(CHOICES[name])]
    missing = [name for name in wanted if name not in present]
    ladder = [name for name in present if CHOICES[name].ladder]
    print(conditions(options.threads))
    for program in options.programs or PROGRAMS:
        trials = in_turns(
            program,
            present,
            turns=options.repeats or (25 if options.full else 12),
            seconds=options.seconds,
            least=dict.fromkeys(ladder, LADDER_STEPS) if options.full else None,
            threads=options.threads,
        )
        print_table(program, trials, missing, as_markdown=options.markdown)
    print(f"\nAfterwards: {conditions(options.threads)}")


if __name__ == "__main__":
    main()
