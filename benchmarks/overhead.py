"""What watching costs: CPU time of the same training, bare and watched, in turns.

    python benchmarks/overhead.py [--steps 300] [--repeats 7] [--every N] [--threads 1]

Each repeat trains bare, then watched (run file, rules and all), in one process. Machines are noisy,
so a training's time is made of medians: that of its bare steps, or that of its unmeasured and that
of its measured steps, each times their number, with building, starting, judging and saving on top;
the first ten steps, which are measured closely, are taken as they are. Printed are the ratio of the
quietest watched training to the quietest bare one, and the median, least and greatest of the pairs.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from traindx.capture.cadence import DENSE
from traindx.records import EventKind
from traindx.session import Options, Session


class Block(nn.Module):
    """A residual block with BatchNorm."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.skip = nn.Conv2d(inside, outside, 1, stride) if inside != outside else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(hidden)) + self.skip(x))


def mlp() -> nn.Module:
    """784-512-512-10 with BatchNorm."""
    return nn.Sequential(
        nn.Linear(784, 512), nn.BatchNorm1d(512), nn.ReLU(),
        nn.Linear(512, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Linear(512, 10),
    )  # fmt: skip


def resnet() -> nn.Module:
    """Three stages of 16, 32 and 64 channels, two blocks each."""
    stages = [(16, 16, 1), (16, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1)]
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        *(Block(*stage) for stage in stages),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip


PROGRAMS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp 784-512-512-10 BN, batch 128": (mlp, (128, 784)),
    "resnet 16-32-64, 32x3x32x32": (resnet, (32, 3, 32, 32)),
}


def train(
    make: Callable[[], nn.Module], shape: tuple[int, ...], steps: int
) -> tuple[float, list[float]]:
    """CPU seconds of building a model, and of each step of its training."""
    start = time.process_time()
    torch.manual_seed(0)
    model, inputs, labels = make(), torch.randn(shape), torch.randint(0, 10, shape[:1])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    marks = [time.process_time()]
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        marks.append(time.process_time())
    return marks[0] - start, [end - begin for begin, end in pairwise(marks)]


def watched(
    make: Callable[[], nn.Module], shape: tuple[int, ...], steps: int, options: Options
) -> tuple[list[float], float, set[int]]:
    """The same, watched: its steps, the time around them, and which of them were measured."""
    start = time.process_time()
    session = Session("overhead", options, warn=print)
    session.start()
    _, seconds = train(make, shape, steps)
    run = session.finish(0)
    around = time.process_time() - start - sum(seconds)
    return seconds, around, {event.step for event in run.events(EventKind.MEASURED)}


def typical(seconds: list[float], measured: set[int]) -> float:
    """Time of a training without what the machine did besides."""
    close, rest = seconds[:DENSE], [*enumerate(seconds)][DENSE:]
    parts = ([s for i, s in rest if i in measured], [s for i, s in rest if i not in measured])
    return sum(close) + sum(median(part) * len(part) for part in parts if part)


def compare(name: str, steps: int, repeats: int, every: int | None) -> None:
    """Print one line of the table."""
    make, shape = PROGRAMS[name]
    bare_totals: list[float] = []
    watched_totals: list[float] = []
    bare: list[float] = []
    measured: set[int] = set()
    with tempfile.TemporaryDirectory() as folder:
        train(make, shape, 20)
        for _ in range(repeats):
            build, bare = train(make, shape, steps)
            options = Options(every=every, folder=Path(folder))
            seconds, around, measured = watched(make, shape, steps, options)
            bare_totals.append(build + typical(bare, set()))
            watched_totals.append(around + typical(seconds, measured))
    ratios = [w / b for w, b in zip(watched_totals, bare_totals, strict=True)]
    print(
        f"{name}: bare {1000 * median(bare):.2f} ms/step, measured {len(measured)}/{steps} steps, "
        f"CPU ratio of the quietest {min(watched_totals) / min(bare_totals):.3f}, "
        f"of pairs {median(ratios):.3f} ({min(ratios):.3f}-{max(ratios):.3f})"
    )


def main() -> None:
    """Parse and print the table."""
    parser = argparse.ArgumentParser(description="What watching costs.")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--every", type=int, default=None)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print(f"torch {torch.__version__}, {arguments.threads} thread(s), {arguments.repeats} pairs")
    for name in PROGRAMS:
        compare(name, arguments.steps, arguments.repeats, arguments.every)


if __name__ == "__main__":
    main()
