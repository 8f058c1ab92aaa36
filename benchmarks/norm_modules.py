"""What our normalization layers cost in training, beside torch's own, with one thread.

    python benchmarks/norm_modules.py [--rounds 41] [--only BatchNorm2d]

Forward and backward, by processor time. Each round times both in turn, every other time backwards,
so that a busy machine slows both alike; the least time of each is printed, and the median over
rounds of the ratio, with the middle half of the ratios.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from traindx.norm import modules as ours

TRACKED = {"track_running_stats": True}
LAST = torch.channels_last
CASES: tuple[tuple[str, tuple[int, ...], tuple[Any, ...], dict[str, Any], Any], ...] = (
    ("BatchNorm1d", (8, 16), (16,), {}, None),
    ("BatchNorm1d", (128, 1024), (1024,), {}, None),
    ("BatchNorm1d", (8, 4096), (4096,), {}, None),
    ("BatchNorm1d", (128, 1024), (1024,), {"momentum": None}, None),
    ("BatchNorm2d", (4, 8, 4, 4), (8,), {}, None),
    ("BatchNorm2d", (16, 64, 28, 28), (64,), {}, None),
    ("BatchNorm2d", (16, 64, 28, 28), (64,), {}, LAST),
    ("BatchNorm2d", (8, 512, 7, 7), (512,), {}, None),
    ("BatchNorm3d", (2, 16, 8, 16, 16), (16,), {}, None),
    ("SyncBatchNorm", (4, 8, 4, 4), (8,), {}, None),
    ("InstanceNorm2d", (4, 8, 4, 4), (8,), TRACKED, None),
    ("InstanceNorm2d", (8, 64, 28, 28), (64,), TRACKED, None),
    ("LayerNorm", (4, 16), (16,), {}, None),
    ("LayerNorm", (16, 128, 768), (768,), {}, None),
    ("RMSNorm", (4, 16), (16,), {}, None),
    ("RMSNorm", (16, 128, 768), (768,), {}, None),
    ("GroupNorm", (4, 8, 4, 4), (2, 8), {}, None),
    ("GroupNorm", (16, 64, 28, 28), (8, 64), {}, None),
    ("GroupNorm", (4, 8, 4, 4), (2, 8), {}, LAST),
    ("GroupNorm", (16, 64, 28, 28), (8, 64), {}, LAST),
    ("GroupNorm", (4, 256, 56, 56), (32, 256), {}, LAST),
)


def step(layer: nn.Module, x: torch.Tensor, dy: torch.Tensor) -> Callable[[], Any]:
    """A forward and backward pass of a training step, its gradients dropped."""
    leaves = [x, *layer.parameters()]

    def run() -> None:
        layer(x).backward(dy)
        for leaf in leaves:
            leaf.grad = None

    return run


def times(functions: list[Callable[[], Any]], rounds: int) -> list[list[float]]:
    """Microseconds of each function in each round, taken in turn, every other time backwards."""
    start = time.process_time()
    for function in functions * 3:
        function()
    calls = max(1, min(300, int(0.01 * len(functions) * 3 / (time.process_time() - start))))
    taken: list[list[float]] = [[] for _ in functions]
    for number in range(rounds):
        for i in (range(len(functions)), reversed(range(len(functions))))[number % 2]:
            start = time.process_time()
            for _ in range(calls):
                functions[i]()
            taken[i].append(1e6 * (time.process_time() - start) / calls)
    return taken


def main() -> None:
    """Print a line a layer and shape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"{'layer':<44}{'torch us':>10}{'ours us':>10}{'ratio':>7}   middle half")
    for name, shape, args, more, memory in CASES:
        if options.only not in name:
            continue
        x = torch.randn(shape).contiguous(memory_format=memory or torch.contiguous_format)
        x.requires_grad_()
        dy = torch.randn_like(x)
        layers = [getattr(home, name)(*args, **more) for home in (nn, ours)]
        theirs, own = times([step(layer, x, dy) for layer in layers], options.rounds)
        ratios = [b / a for a, b in zip(theirs, own, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        what = " ".join([name, "x".join(map(str, shape)), *more, "channels_last" * bool(memory)])
        print(
            f"{what:<44}{min(theirs):10.1f}{min(own):10.1f}{middle:7.2f}   {low:.2f} to {high:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
