"""How the cost of watching grows: with the number of layers, and with the number of steps.

    python benchmarks/scaling.py [--layers N ...] [--processes N] [--steps N] [--every N]
                                 [--only layers|steps] [--json FILE] [--markdown [FILE]]
                                 [--from FILE]

The layers are those of a chain of Linear and ReLU, measured beside bare training as `overhead.py`
does. The steps are those of one Linear layer, watched to the end in a process of its own: the size
of its run file and its memory after each power of ten, and how long a report on the file takes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.costs import conditions, results
from benchmarks.costs.measure import Cost, bare_step, cost, tried
from benchmarks.costs.peers import CHOICES
from benchmarks.costs.programs import find
from benchmarks.costs.sessions import Plan, Session
from benchmarks.costs.settings import DENSE, WARM, Traindx, step
from benchmarks.costs.table import markdown, number, plain

MIB = 2**20
NAME = "benchmarks/scaling.py"
SETTINGS = ("again", "default", "every")
SECONDS = 0.3
"""About what a block of bare steps takes."""
_LAYERS = (
    "layers", "bare ms", "noise", "default", "+us, unmeasured step", "every step",
    "+us, measured step", "+us a module",
)  # fmt: skip
_STEPS = ("steps", "us a step", "file MB", "memory MiB")


# -- layers --------------------------------------------------------------------------------------


def layers(count: int, processes: int) -> dict[str, Any]:
    """What a step of a chain of so many layers costs more."""
    program = f"chain-{count}"
    size = min(60, max(4, round(SECONDS / bare_step(program, 1))))
    seen: dict[str, list[Session]] = {name: [] for name in SETTINGS}
    for _ in range(processes):
        for name in SETTINGS:
            ladder = CHOICES[name].ladder
            steps = DENSE + max(20, size) if ladder else WARM + size
            answer = tried(Plan(program, name, 1 if ladder else 2, size, steps))
            if isinstance(answer, str):
                return {"layers": count, "failed": answer}
            seen[name].append(answer)
    again, default, every = (cost(seen[name], ladder=CHOICES[name].ladder) for name in SETTINGS)
    return {
        "layers": count,
        "bare": again.bare,
        "noise": again.quiet,
        "default": default.quiet.middle,
        "unmeasured": _seconds(default, default.unmeasured),
        "every": every.quiet.middle,
        "measured": _seconds(every, every.measured),
    }


def _seconds(found: Cost, ratio: float | None) -> float | None:
    """What a step takes longer than a bare one."""
    return None if ratio is None else found.bare * (ratio - 1)


def _of_layers(one: results.Found) -> list[str]:
    count = one["layers"]
    if "failed" in one:
        return [str(count), one["failed"], *[""] * (len(_LAYERS) - 2)]
    modules, measured = 2 * count + 2, one["measured"]
    return [
        str(count),
        number(1000 * one["bare"], ".2f"),
        f"{one['noise'][1]:.3f}-{one['noise'][2]:.3f}",
        number(one["default"]),
        number(one["unmeasured"] and 1e6 * one["unmeasured"], ".0f"),
        number(one["every"]),
        number(measured and 1e6 * measured, ".0f"),
        number(measured and 1e6 * measured / modules, ".1f"),
    ]


# -- steps ---------------------------------------------------------------------------------------


def _resident() -> int:
    """Bytes of memory in use; 0 where the system does not tell."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except OSError:
        return 0
    return int(pages) * 4096


def _train(pipe: Connection, folder: Path, last: int, every: int | None) -> None:
    """Train to `last` steps; tell size and memory after each power of ten, and once closed."""
    import torch

    torch.set_num_threads(1)
    training = find("tiny").make()
    watched = Traindx(training, folder, **({} if every is None else {"every": every}))
    start = time.process_time()

    def tell(done: int) -> None:
        size = sum(file.stat().st_size for file in folder.iterdir())
        pipe.send((done, time.process_time() - start, size, _resident()))

    for done in range(1, last + 1):
        step(training, watched)
        if done >= 1000 and (done == last or str(done).strip("0") == "1"):
            tell(done)
    watched.finish()
    tell(0)


def _report(pipe: Connection, folder: Path) -> None:
    """Tell how long it takes to read the run file, and to write the page on it."""
    from traindx.report.html.page import render
    from traindx.run import Run

    start = time.perf_counter()
    run = Run.load(next(folder.glob("*.traindx")))
    opened = time.perf_counter()
    page = render(run)
    pipe.send((opened - start, time.perf_counter() - opened, len(page), _resident()))


def _begun(target: Callable[..., None], *arguments: object) -> tuple[Connection, Any]:
    """A process of its own, and where it tells what it finds."""
    spawning = multiprocessing.get_context("spawn")
    ours, theirs = spawning.Pipe()
    child = spawning.Process(target=target, args=(theirs, *arguments), daemon=True)
    child.start()
    theirs.close()
    return ours, child


def steps(last: int, every: int | None) -> dict[str, Any]:
    """What so many steps leave behind."""
    rows: list[dict[str, float]] = []
    with TemporaryDirectory() as name:
        pipe, child = _begun(_train, Path(name), last, every)
        done = 1
        while done:
            done, seconds, size, memory = pipe.recv()
            each = seconds / (done or last)
            rows.append({"steps": done, "seconds": each, "size": size, "memory": memory})
        child.join()
        pipe, child = _begun(_report, Path(name))
        opened, rendered, length, memory = pipe.recv()
        child.join()
    report = {"opened": opened, "rendered": rendered, "length": length, "memory": memory}
    return {"every": every, "rows": rows, "report": report}


def _of_steps(row: results.Found) -> list[str]:
    return [
        f"{row['steps']:,}" if row["steps"] else "closed",
        f"{1e6 * row['seconds']:.0f}",
        f"{row['size'] / 1e6:.2f}",
        f"{row['memory'] / MIB:.0f}",
    ]


# -- both ----------------------------------------------------------------------------------------


def tables(found: results.Found, *, as_markdown: bool = False) -> str:
    """What was found, with the command and the machine above it."""
    table = markdown if as_markdown else plain
    parts = [results.conditions(found, as_markdown=as_markdown)]
    if found["layers"]:
        parts.append(table(_LAYERS, [_of_layers(one) for one in found["layers"]]))
    if taken := found["steps"]:
        report = taken["report"]
        parts.append(table(_STEPS, [_of_steps(row) for row in taken["rows"]]))
        parts.append(
            f"Opened in {report['opened']:.2f} s, page of {report['length'] / 1e6:.2f} MB in "
            f"{report['rendered']:.2f} s more, {report['memory'] / MIB:.0f} MiB."
        )
    return "\n\n".join(parts)


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Measure what is wanted."""
    import torch  # noqa: F401  # before the processes are forked, so that it is read once

    over = conditions.beginning()
    of_layers = [] if options.only == "steps" else options.layers
    return {
        "layers": [layers(count, options.processes) for count in of_layers],
        "steps": None if options.only == "layers" else steps(options.steps, options.every),
        "conditions": over(),
    }


def main() -> None:
    """Measure, or read what was, and show it."""
    parser = argparse.ArgumentParser(description="How the cost of watching grows.")
    parser.add_argument("--layers", type=int, nargs="+", default=[10, 30, 100, 300, 1000])
    parser.add_argument("--processes", type=int, default=3, help="of each setting")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--every", type=int, help="measure one step of so many")
    parser.add_argument("--only", choices=["layers", "steps"])
    results.add_files(parser, NAME)
    options = parser.parse_args()
    found = options.source or measured(options)
    print(tables(found))
    results.keep(found, options, tables(found, as_markdown=True), NAME)


if __name__ == "__main__":
    main()
