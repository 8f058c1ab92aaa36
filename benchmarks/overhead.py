"""What watching costs: CPU and wall time of the same training, bare and watched, in turns.

    python benchmarks/overhead.py [--steps 300] [--repeats 7] [--every N] [--threads 1]

Each repeat trains bare, then watched (run file, rules and all), in one process; the ratio is taken
pair by pair, so a drift of the machine's speed cancels. Printed are median, minimum and maximum.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
import torch.nn.functional as F
from torch import Tensor, nn

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


def train(make: Callable[[], nn.Module], shape: tuple[int, ...], steps: int) -> tuple[float, float]:
    """CPU and wall seconds of a training loop; the first 3 steps warm up and are not counted."""
    torch.manual_seed(0)
    model, inputs, labels = make(), torch.randn(shape), torch.randint(0, 10, shape[:1])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    marks = (time.process_time(), time.perf_counter())
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    return time.process_time() - marks[0], time.perf_counter() - marks[1]


def watched(
    make: Callable[[], nn.Module], shape: tuple[int, ...], steps: int, options: Options
) -> tuple[float, float, int]:
    """The same, watched from before the model is built until the verdict is saved."""
    marks = (time.process_time(), time.perf_counter())
    session = Session("overhead", options, warn=print)
    session.start()
    train(make, shape, steps)
    run = session.finish(0)
    return time.process_time() - marks[0], time.perf_counter() - marks[1], run.measured_steps


def compare(name: str, steps: int, repeats: int, every: int | None) -> None:
    """Print one line of the table."""
    make, shape = PROGRAMS[name]
    cpu, wall, bare_ms = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        options = Options(every=every, folder=Path(folder))
        train(make, shape, 20)
        for _ in range(repeats):
            bare = train(make, shape, steps)
            seen = watched(make, shape, steps, options)
            cpu.append(seen[0] / bare[0])
            wall.append(seen[1] / bare[1])
            bare_ms.append(1000 * bare[0] / steps)
    ratios = "  ".join(
        f"{label} {median(values):.3f} ({min(values):.3f}-{max(values):.3f})"
        for label, values in (("cpu", cpu), ("wall", wall))
    )
    print(f"{name}: bare {median(bare_ms):.2f} ms/step, measured {seen[2]}/{steps} steps, {ratios}")


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
