"""What the statistics of one tensor cost, beside one read of it, with one thread.

    python benchmarks/stats.py [--elements 2097152] [--rounds 31] [--module FILE]

Each round times all of them in turn, so that a busy machine slows all alike; the median is printed.
`--module` times the `summarize` of another file beside it, such as that of an earlier revision.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from traindx.stats import summarize

DTYPES = ("float32", "bfloat16", "float16", "float64", "float8_e4m3fn")
LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda tensor: tensor,
    "channels_last": lambda tensor: tensor.to(memory_format=torch.channels_last),
    "every second column": lambda tensor: tensor.repeat_interleave(2, dim=3)[..., ::2],
    "mean 100 std": lambda tensor: (tensor.float() + 100).to(tensor.dtype),
}


def microseconds(functions: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Median time of each function, taken in turn."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            times[name].append(1e6 * (time.perf_counter() - start))
    return {name: statistics.median(values) for name, values in times.items()}


def loaded(path: Path) -> Callable[..., Any]:
    """`summarize` of a file."""
    spec = importlib.util.spec_from_file_location("stats_beside", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.summarize


def main() -> None:
    """Print one line a dtype and layout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--elements", type=int, default=1 << 21)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--module", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    beside = loaded(options.module) if options.module else None
    torch.manual_seed(0)
    side = max(1, round((options.elements / 32) ** 0.5))
    values = torch.randn(-(-options.elements // (32 * side)), 32, 1, side)
    print(f"{values.numel()} elements, us: one read (sum), summarize, the same over the read")
    for dtype in DTYPES:
        for layout, arrange in LAYOUTS.items():
            tensor = arrange(values.to(getattr(torch, dtype)))
            functions: dict[str, Callable[[], Any]] = {
                # The bytes are what costs, and torch sums no 8-bit floats.
                "read": (tensor.view(torch.int8) if tensor.element_size() == 1 else tensor).sum,
                "ours": lambda tensor=tensor: summarize(tensor, sample_at=1),
            }
            if beside is not None and tensor.element_size() > 1:
                functions["beside"] = lambda tensor=tensor: beside(tensor, sample_at=1)
            times = microseconds(functions, options.rounds)
            read, ours = times["read"], times["ours"]
            other = f"  other file {times['beside']:8.0f}" if "beside" in times else ""
            print(f"{dtype:14} {layout:20} {read:7.0f} {ours:8.0f} {ours / read:6.1f}{other}")


if __name__ == "__main__":
    main()
