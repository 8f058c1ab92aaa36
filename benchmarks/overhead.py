"""What watching costs: the same training bare and watched, with other tools beside it.

    python benchmarks/overhead.py [PROGRAM ...] [--quick] [--peers] [--budgets 0.01 0.03 0.1]
                                  [--settings NAME ...] [--processes N] [--seconds S] [--threads N]
                                  [--json FILE] [--markdown [FILE]] [--from FILE]

On a quiet machine `--quick` takes some 2 minutes, everything but `--peers` about 20, and with them
50 minutes (`--processes 3`).

Each process trains some steps bare, some in a setting, and so on in turns, with the same tensors at
the same places in memory; a ratio compares steps with the bare ones beside them. Several processes
are run one after another, each setting once before any comes again. `quiet CPU` compares the
quietest tenths of the steps, `CPU` and `wall` means, all of them as the median over processes.
`bare again` says what all of that reads where there is nothing to be seen. Steps that are measured
and steps that are not are joined in the proportion of the long run. CPU time is that of the
process: a tool's servers and other processes are left out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from math import nan
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.costs import conditions, results
from benchmarks.costs.measure import Estimate, bare_step, cost, spent, tried
from benchmarks.costs.peers import CHOICES, PEERS, installed
from benchmarks.costs.programs import PROGRAMS
from benchmarks.costs.sessions import Plan, Session
from benchmarks.costs.settings import BUDGETS, EXEMPT, FIRST_EVERY, GRACE
from benchmarks.costs.table import plain

NAME = "benchmarks/overhead.py"
SETTINGS = ("again", "floor", "listening", "default", "every")
DEFAULT_TARGET = 1.03
SHORT = 0.2
"""Part of the other blocks' length: small differences want many short blocks beside each other."""
SMALL = 0.01
"""Seconds of a bare step up to which the budget is what says how many steps are measured."""
MORE = 10
"""Times as many short blocks of such steps: beside them listening is a larger part of a budget."""
PERIODS = 2
"""Intervals of the ladder that other programs are seen for."""
LONG = 16.0
"""Seconds of such steps in which measuring at its first interval takes what is exempt from the
budget, where it exceeds that, and as many again."""
SURELY = 1.75
"""Times the steps that what a measured one takes lets expect: measuring gets cheaper in a run."""
PEER_PROCESSES = 2
"""Processes of each peer: they cost many times the noise."""


def target(program: str, setting: str) -> float | None:
    """The largest ratio aimed at, if there is one."""
    if setting == "every":
        return PROGRAMS[program].every_step
    return DEFAULT_TARGET if setting == "default" else None


def plan(program: str, setting: str, options: argparse.Namespace, bare: float) -> Plan:
    """The blocks of one process of a setting, from what a bare step takes."""
    size = min(60, max(4, round(options.seconds / bare)))
    cycles = max(2, min(4, round(2 * options.seconds / (size * bare))))
    choice = CHOICES[setting]
    if setting == "listening":
        size, cycles = max(4, round(SHORT * size)), round(2 / SHORT)
        cycles *= MORE if bare < SMALL else 1
    if choice.ladder:
        steps, cycles = choice.settles + PERIODS * FIRST_EVERY, 1
        size = max(size, FIRST_EVERY // 2)
        if bare < SMALL:
            steps = max(3 * EXEMPT, round(LONG / bare))
    else:
        steps, cycles = choice.settles + size, cycles if choice.leaves and not choice.peer else 1
    return Plan(
        program,
        setting,
        cycles,
        bare=2 * size if cycles == 1 else size,
        steps=steps,
        seconds=5 * options.seconds if choice.peer else float("inf"),
        threads=options.threads,
    )


def of_program(program: str, wanted: Sequence[str], options: argparse.Namespace) -> dict[str, Any]:
    """Everything about one program."""
    bare = bare_step(program, options.threads)
    present = [name for name in wanted if installed(CHOICES[name])]
    seen: dict[str, list[Session]] = {name: [] for name in present}
    failed: dict[str, str] = {name: "not installed" for name in wanted if name not in present}
    for turn in range(options.processes):
        for name in present[turn % len(present) :] + present[: turn % len(present)]:
            if name in failed or (CHOICES[name].peer and turn >= PEER_PROCESSES):
                continue
            answer = tried(plan(program, name, options, bare))
            if isinstance(answer, str):
                failed[name] = answer
            else:
                seen[name].append(answer)
    settings = {name: _setting(program, name, seen.get(name, []), failed) for name in wanted}
    bares = [one["bare"] for one in settings.values() if "bare" in one]
    return {
        "title": PROGRAMS[program].title,
        "bare": min(bares, default=bare),
        "settings": settings,
        "budgets": _budgets(program, settings, options, bare),
    }


def _setting(
    program: str, name: str, sessions: list[Session], failed: dict[str, str]
) -> dict[str, Any]:
    title, aim = CHOICES[name].title, target(program, name)
    if name in failed or not sessions:
        return {"title": title, "failed": failed.get(name, "not run")}
    seen = cost(sessions, ladder=CHOICES[name].ladder, settles=CHOICES[name].settles)
    return {"title": title, "target": aim, **asdict(seen)}


def _budgets(
    program: str, settings: dict[str, Any], options: argparse.Namespace, bare: float
) -> list[dict[str, Any]]:
    """How budgets are kept, each in one long run."""
    paired = settings.get("listening", {}).get("paired", (1.0, nan))
    listening = Estimate(max(0.0, paired[0] - 1), paired[1])
    steps = max(options.budget_steps, min(3000, round(options.budget_seconds / bare)))
    steps += _exempt(settings.get("default", {}), bare)
    rows: list[dict[str, Any]] = []
    for budget in options.budgets or ():
        answer = tried(
            Plan(program, BUDGETS[budget], 1, bare=4, steps=steps, threads=options.threads)
        )
        if isinstance(answer, str):
            rows.append({"budget": budget, "failed": answer})
        else:
            rows.append(asdict(spent(answer, budget, listening)))
    return rows


def _exempt(default: dict[str, Any], bare: float) -> int:
    """As many steps as surely come before a budget is enforced, from what a measured one takes."""
    longer = (default.get("measured") or 2) - (default.get("unmeasured") or 1)
    return max(EXEMPT, round(SURELY * FIRST_EVERY * GRACE / (max(longer, 0.1) * bare)))


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Measure all that is wanted, telling of each program as it is done."""
    import torch  # noqa: F401  # before the processes are forked, so that it is read once

    wanted = [*(options.settings or SETTINGS), *(PEERS if options.peers else ())]
    if options.budgets and "listening" not in wanted:
        wanted.append("listening")  # which budgets cover
    over = conditions.beginning(options.threads)
    programs: dict[str, Any] = {}
    for program in options.programs or PROGRAMS:
        programs[program] = of_program(program, wanted, options)
        print(results.of_program(programs[program], plain), end="\n\n", flush=True)
    peers = {
        name: {
            "title": CHOICES[name].title,
            "version": conditions.version(CHOICES[name].module),
            "collects": CHOICES[name].collects,
        }
        for name in wanted
        if CHOICES[name].peer and installed(CHOICES[name])
    }
    found = {"conditions": over(), "programs": programs, "peers": peers}
    print(results.conditions(found))
    return found


def parsed() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description="What watching costs.")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS))
    parser.add_argument("--quick", action="store_true", help="within two minutes")
    parser.add_argument("--peers", action="store_true", help="other tools, too")
    parser.add_argument("--settings", nargs="+", choices=[*CHOICES], help="only these")
    parser.add_argument(
        "--budgets", nargs="*", type=float, choices=[*BUDGETS], help="only these; none is none"
    )
    parser.add_argument("--processes", type=int, help="of each setting")
    parser.add_argument("--seconds", type=float, help="about what a block of bare steps takes")
    parser.add_argument(
        "--budget-steps", type=int, default=250, help="at least, once it is enforced"
    )
    parser.add_argument("--budget-seconds", type=float, default=8, help="or about this long bare")
    parser.add_argument("--threads", type=int, default=1)
    results.add_files(parser, NAME)
    options = parser.parse_args()
    if unknown := [name for name in options.programs if name not in PROGRAMS]:
        parser.error(f"no such program: {unknown[0]}")
    options.processes = options.processes or (2 if options.quick else 5)
    options.seconds = options.seconds or (0.3 if options.quick else 0.5)
    if options.budgets is None:
        options.budgets = [] if options.quick or options.settings else [*BUDGETS]
    return options


def main() -> None:
    """Measure, or read what was, and show it."""
    options = parsed()
    if options.source:
        found = options.source
        print(results.tables(found))
    else:
        found = measured(options)
    text = results.tables(found, as_markdown=True)
    results.keep(found, options, text, NAME)


if __name__ == "__main__":
    main()
