"""How the cost of watching grows: with the number of layers, and with the number of steps.

    python benchmarks/scaling.py [--layers N ...] [--steps N] [--every N] [--only layers|steps]

The layers are those of a chain of Linear and ReLU, measured in turns with bare training as
`overhead.py` does. The steps are those of one Linear layer, watched to the end in a process of
its own: the size of its run file and its memory after each power of ten, and how long a report on
the file takes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.costs.measure import cost, in_turns
from benchmarks.costs.programs import find
from benchmarks.costs.settings import Traindx, step
from benchmarks.costs.table import number, plain

MIB = 2**20


def layers(counts: list[int], turns: int) -> None:
    """Print what a step costs more, by the number of layers."""
    rows: list[list[str]] = []
    for count in counts:
        settings = ("again", "default", "every")
        trials = in_turns(f"chain-{count}", settings, turns=turns, seconds=0.2)
        again, ladder, close = (cost(trials[name]) for name in settings)
        if not (again and ladder and close):
            rows.append([str(count), *(trial.failed for trial in trials.values())])
            continue
        modules = 2 * count + 2
        rows.append(
            [
                str(count),
                f"{1000 * again.bare:.2f}",
                f"{again.cpu.low:.3f}-{again.cpu.high:.3f}",
                number(ladder.cpu.middle),
                number(ladder.unmeasured_us, ".0f"),
                number(close.cpu.middle),
                number(close.measured_us, ".0f"),
                number(close.measured_us and close.measured_us / modules, ".1f"),
            ]
        )
    head = (
        "layers", "bare ms", "noise", "default", "+us, unmeasured step", "every step",
        "+us, measured step", "+us a module",
    )  # fmt: skip
    print(plain(head, rows), flush=True)


def _resident() -> int:
    """Bytes of memory in use; 0 where the system does not tell."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except OSError:
        return 0
    return int(pages) * 4096


def _train(pipe: Connection, folder: Path, last: int, every: int | None) -> None:
    """Train to `last` steps; tell size and memory after each power of ten."""
    import torch

    torch.set_num_threads(1)
    training = find("tiny").make()
    watched = Traindx(training, folder, **({} if every is None else {"every": every}))
    start = time.process_time()
    for done in range(1, last + 1):
        step(training, watched)
        if done >= 1000 and (done == last or (str(done).strip("0") == "1")):
            size = sum(file.stat().st_size for file in folder.iterdir())
            pipe.send((done, time.process_time() - start, size, _resident()))
    watched.finish()
    size = sum(file.stat().st_size for file in folder.iterdir())
    pipe.send((0, time.process_time() - start, size, _resident()))


def _report(pipe: Connection, folder: Path) -> None:
    """Tell how long it takes to read the run file, and to write the page on it."""
    from traindx.report.html.page import render
    from traindx.run import Run

    start = time.perf_counter()
    run = Run.load(next(folder.glob("*.traindx")))
    opened = time.perf_counter()
    page = render(run)
    pipe.send((opened - start, time.perf_counter() - opened, len(page), _resident()))


def steps(last: int, every: int | None) -> None:
    """Print what so many steps leave behind."""
    spawning = multiprocessing.get_context("spawn")
    rows: list[list[str]] = []
    with TemporaryDirectory() as name:
        ours, theirs = spawning.Pipe()
        child = spawning.Process(target=_train, args=(theirs, Path(name), last, every), daemon=True)
        child.start()
        theirs.close()
        done = 1
        while done:
            done, seconds, size, memory = ours.recv()
            numbers = [f"{size / 1e6:.2f}", f"{memory / MIB:.0f}"]
            each = f"{1e6 * seconds / (done or last):.0f}"
            rows.append([str(done) if done else "closed", each, *numbers])
        child.join()
        print(plain(("steps", "us a step", "file MB", "memory MiB"), rows))
        ours, theirs = spawning.Pipe()
        child = spawning.Process(target=_report, args=(theirs, Path(name)), daemon=True)
        child.start()
        theirs.close()
        opened, rendered, length, memory = ours.recv()
        child.join()
    print(
        f"Opened in {opened:.2f} s, page of {length / 1e6:.2f} MB in {rendered:.2f} s more, "
        f"{memory / MIB:.0f} MiB"
    )


def main() -> None:
    """Parse and print."""
    parser = argparse.ArgumentParser(description="How the cost of watching grows.")
    parser.add_argument("--layers", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--repeats", type=int, default=5, help="turns of each setting")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--every", type=int, help="measure one step of so many")
    parser.add_argument("--only", choices=["layers", "steps"])
    options = parser.parse_args()
    if options.only != "steps":
        layers(options.layers, options.repeats)
    if options.only != "layers":
        steps(options.steps, options.every)


if __name__ == "__main__":
    main()
