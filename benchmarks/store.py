"""What a run file costs, and what `kill -9` leaves of one.

Run it with `python benchmarks/store.py`; `--kills` and `--seed` repeat other runs. A child process
writes and commits without pause, so that most kills fall into a commit. After each kill the file
is opened where it lies, from a read-only folder by an ordinary user, and as a copy without its
journal; what it holds is compared item by item with what the child wrote.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from traindx.errors import BadRunFileError
from traindx.findings import Evidence, Finding, Severity, Verdict
from traindx.records import Event, EventKind, Item, Point, Record, Scalar, Site, TensorStats, Vector
from traindx.run import Run
from traindx.store.reader import read
from traindx.store.recovery import has_journal, journal_of
from traindx.store.writer import Writer

NOBODY = 65534
LAYERS = tuple(Site("net", f"layers.{i}.weight") for i in range(20))


# -- what is written -----------------------------------------------------------------------------


def items_of(step: int) -> list[Item]:
    """Everything one step writes; the same for the same step."""
    rng = random.Random(step)
    stats = TensorStats(4096, rng.gauss(0, 1), 4096 * rng.random(), -3 - rng.random(), 3.0)
    scalars = [Scalar(step, "update.ratio", rng.random(), site) for site in LAYERS]
    records = [Record(step, site, Point.GRAD, stats) for site in LAYERS]
    vectors = [Vector(step, "norm.batch_mean", site, (stats.mean, stats.min)) for site in LAYERS]
    return [*scalars, *records, *vectors, Event(step, EventKind.MEASURED)]


def verdict_of(step: int) -> Verdict:
    """A verdict of some 200 kB that differs at each step, so that commits rewrite many pages."""
    evidence = Evidence(LAYERS[0], step, f"{step}" * 200, {"step": float(step)})
    finding = Finding(1, "G001", "name", Severity.ERROR, True, evidence, 0, step, 1)
    return Verdict((finding,) * 200)


def write_until_killed(path: Path, interval: float) -> None:
    """Write step after step; print the time before each, and what is committed after it."""
    writer = Writer(path, interval=interval)
    step = 0
    while True:
        os.write(1, f"writing {time.monotonic()}\n".encode())
        writer.write_verdict(verdict_of(step))
        writer.write(items_of(step))
        step += 1
        if not writer.waiting:
            os.write(1, f"committed {step}\n".encode())


# -- killing -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kill:
    """What one kill left.

    Attributes:
        in_commit: Whether it fell into a commit.
        steps: Steps whose writing had begun.
        lost: Steps of those that the file does not hold.
        lost_committed: Steps of those that had been committed.
        age: Seconds from the writing of the oldest lost step to the kill; 0 if none is lost.
        in_place: Whether the file opened where it lies.
        read_only: Whether it opened from a read-only folder.
        copy: What a copy without the journal did: `opened`, `named` (the missing file), `failed`.
    """

    in_commit: bool
    steps: int
    lost: int
    lost_committed: int
    age: float
    in_place: bool
    read_only: bool
    copy: str


def kill_once(folder: Path, seconds: float, interval: float) -> Kill:
    """Kill a writing child after `seconds` of writing, and look at what it left."""
    path = folder / "run.traindx"
    log = folder / "log.txt"
    command = [sys.executable, __file__, "--write", str(path), "--interval", str(interval)]
    with log.open("wb") as stream, subprocess.Popen(command, stdout=stream) as child:
        while not log.stat().st_size:
            assert child.poll() is None, "the child ended before it wrote anything"
            time.sleep(0.005)
        time.sleep(seconds)
        child.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        child.wait()
    return _look(path, log.read_text(), killed)


def _look(path: Path, log: str, killed: float) -> Kill:
    lines = [line.split() for line in log.splitlines()]
    written = [float(when) for what, when in lines if what == "writing"]
    committed = max((int(steps) for what, steps in lines if what == "committed"), default=0)
    in_commit = has_journal(path)
    copy = _copy_without_journal(path)
    before = path.read_bytes()
    held = _steps_held(path)
    with read_only(path.parent):
        held_read_only = _steps_held(path)
    assert path.read_bytes() == before, "reading changed the file"
    lost = written[held:] if held is not None else written
    return Kill(
        in_commit=in_commit,
        steps=len(written),
        lost=len(lost),
        lost_committed=max(0, committed - (held or 0)),
        age=killed - lost[0] if lost else 0.0,
        in_place=held is not None,
        read_only=held_read_only is not None and held_read_only == held,
        copy=copy,
    )


def _steps_held(path: Path) -> int | None:
    """How many steps the file holds, whole and in order; None if it does not open."""
    try:
        items, _ = read(path)
    except BadRunFileError as error:
        print(error, file=sys.stderr)
        return None
    per_step = len(items_of(0))
    steps = len(items) // per_step
    expected = chain.from_iterable(map(items_of, range(steps)))
    assert items == list(islice(expected, len(items))), "items are missing, or out of order"
    return steps


def _copy_without_journal(path: Path) -> str:
    with TemporaryDirectory() as folder:
        copy = Path(shutil.copy(path, Path(folder) / path.name))
        try:
            read(copy)
        except BadRunFileError as error:
            return "named" if journal_of(copy).name in str(error) else "failed"
    return "opened"


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make a folder and its files unwritable; root, whom modes do not stop, becomes nobody."""
    is_root = os.geteuid() == 0
    _set_modes(folder, 0o555, 0o444)
    if is_root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        _set_modes(folder, 0o755, 0o644)


def _set_modes(folder: Path, folder_mode: int, file_mode: int) -> None:
    folder.chmod(0o755)
    for path in folder.iterdir():
        path.chmod(file_mode)
    folder.chmod(folder_mode)


def kills(count: int, seed: int, interval: float = 0.0) -> Iterator[Kill]:
    """Kill at `count` random times; with `interval` 0 the child is nearly always in a commit."""
    rng = random.Random(seed)
    for _ in range(count):
        with TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)
            yield kill_once(Path(folder), rng.uniform(0.05, 1.0) + 2 * interval, interval)


# -- the tables ----------------------------------------------------------------------------------


def print_kills(results: list[Kill]) -> None:
    """One line a kill, and the sums."""
    print("kill  in commit  in place  read-only  steps  lost  committed lost  age of loss  copy")
    for number, kill in enumerate(results, 1):
        flags = f"{kill.in_commit!s:>9}  {kill.in_place!s:>8}  {kill.read_only!s:>9}"
        losses = f"{kill.lost:>4}  {kill.lost_committed:>14}  {kill.age:>9.3f} s"
        print(f"{number:>4}  {flags}  {kill.steps:>5}  {losses}  {kill.copy}")
    print(
        f"{len(results)} kills, {sum(k.in_commit for k in results)} in a commit: "
        f"{sum(k.in_place for k in results)} opened in place, "
        f"{sum(k.read_only for k in results)} read-only; "
        f"committed steps lost: {sum(k.lost_committed for k in results)}; "
        f"oldest loss {max(k.age for k in results):.3f} s; copies without journal: "
        f"{sum(k.copy == 'opened' for k in results)} opened, "
        f"{sum(k.copy == 'named' for k in results)} named the journal, "
        f"{sum(k.copy == 'failed' for k in results)} failed"
    )


def print_costs(name: str, items: list[Item]) -> None:
    """Rate and size of writing and reading items of one kind, in batches of 1000."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.traindx"
        began = time.process_time()
        writer = Writer(path)
        for start in range(0, len(items), 1000):
            writer.write(items[start : start + 1000])
        writer.close()
        wrote = time.process_time() - began
        assert writer.complete
        began = time.process_time()
        run = Run.load(path)
        took = time.process_time() - began
        size = path.stat().st_size
        print(
            f"{len(items):,} {name}: {size / 1e6:.1f} MB, {size / len(items):.1f} bytes each, "
            f"written at {len(items) / wrote:,.0f}/s (of which commits {writer.seconds / wrote:.0%}"
            f"), read in {took:.2f} s ({len(items) / took:,.0f}/s), {run.measured_steps:,} steps "
            "measured"
        )


def training(steps: int, every: int | None) -> Iterator[Item]:
    """A loss at every step, and 20 layers at every N-th, or ever more rarely as by default."""
    rng = random.Random(0)
    for step in range(steps):
        yield Scalar(step, "loss", single(1 / (step + 1) + rng.random()), Site("net"))
        # The interval doubles with every 1,024 measured steps, from 32 on.
        if step < 10 or step % (every or 32 << max(0, (step // 32_768 + 1).bit_length() - 1)) == 0:
            yield from items_of(step)


def single(value: float) -> float:
    """What a loss of single precision is."""
    return array("f", [value])[0]


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description="What a run file costs.")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--interval", type=float, default=0.0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        write_until_killed(options.write, options.interval)
    rng = random.Random(options.seed)
    scalars = [Scalar(i // 20, "update.ratio", rng.random(), LAYERS[i % 20]) for i in range(10**6)]
    print_costs("scalars", [*scalars])
    steps = chain.from_iterable(map(items_of, range(5000)))
    print_costs("records", [item for item in steps if isinstance(item, Record)])
    print_costs("items of 1,000,000 steps", [*training(10**6, None)])
    print_costs("items of 20,000 steps, every one measured", [*training(20_000, 1)])
    print("\nCommitting without pause:")
    print_kills(list(kills(options.kills, options.seed)))
    print("\nCommitting once a second, as by default:")
    print_kills(list(kills(options.kills, options.seed, interval=1.0)))


if __name__ == "__main__":
    main()
