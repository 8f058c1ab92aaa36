"""What the statistics of one tensor cost, beside one read of it, with one thread.

    python benchmarks/stats.py [--sizes 512 2097152] [--rounds 31] [--threads 1] [--before FOLDER]

The floor is one sum over the tensor's memory by torch. Each round times all of them in turn, so
that a busy machine slows all alike; the least time of each is printed, and the median of what
`summarize` takes over the floor of the same round. `--before` times an earlier revision beside it:
a folder `stats`, or a file `stats.py`, of `src/traindx`.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from traindx import stats

SIZES = (10, 512, 4096, 1 << 16, 1 << 18, 1 << 21)
DTYPES = ("float32", "bfloat16", "float16", "float64", "float8_e4m3fn")
LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "channels_last": lambda tensor: tensor.to(memory_format=torch.channels_last),
    "every second column": lambda tensor: tensor.repeat_interleave(2, dim=3)[..., ::2],
    "mean 100 std": lambda tensor: tensor + 100,
}
FUNCTIONS: dict[str, Callable[[Any, torch.Tensor], Any]] = {
    "summarize": lambda module, tensor: module.summarize(tensor),
    "with zeros": lambda module, tensor: module.summarize(tensor, sample_at=1),
    "exponents": lambda module, tensor: module.exponents(tensor, 1),
    "batch_share": lambda module, tensor: float(module.batch_share(tensor, 1)),
    "unmeasurable": lambda module, tensor: module.unmeasurable(tensor),
}


def tensors(size: int) -> dict[str, torch.Tensor]:
    """Tensors of about so many elements, by their dtype, or layout in float32."""
    side = 2 ** round(math.log2(max(1.0, (size / 32) ** 0.5)))
    rows = size // (32 * side)
    values = torch.randn(rows, 32, 1, side) if rows else torch.randn(size)
    made = {name: values.to(getattr(torch, name)) for name in DTYPES if hasattr(torch, name)}
    if values.dim() == 4:
        made.update({name: arrange(values) for name, arrange in LAYOUTS.items()})
    return made


def times(
    functions: dict[str, Callable[[], Any]], rounds: int, calls: int
) -> dict[str, list[float]]:
    """Microseconds of each function in each round, taken in turn, every other time backwards."""
    taken: dict[str, list[float]] = {name: [] for name in functions}
    for number in range(rounds):
        for name, function in list(functions.items())[:: 1 if number % 2 else -1]:
            start = time.perf_counter()
            for _ in range(calls):
                function()
            taken[name].append(1e6 * (time.perf_counter() - start) / calls)
    return taken


def loaded(path: Path) -> ModuleType:
    """An earlier revision of `traindx.stats`, under the name it imports its own parts by."""
    ours = {name: sys.modules.pop(name) for name in list(sys.modules) if is_ours(name)}
    file = path / "__init__.py" if path.is_dir() else path
    spec = importlib.util.spec_from_file_location(stats.__name__, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[stats.__name__] = module
    spec.loader.exec_module(module)
    for name in filter(is_ours, list(sys.modules)):
        del sys.modules[name]
    sys.modules.update(ours)
    return module


def is_ours(name: str) -> bool:
    """Whether a module is `traindx.stats` or a part of it."""
    return f"{name}.".startswith(f"{stats.__name__}.")


def compare(tensor: torch.Tensor, before: ModuleType | None, rounds: int) -> str:
    """The floor and every function, in microseconds, as one line."""
    # The bytes are what costs, and torch sums no 8-bit floats.
    memory = tensor.view(torch.int8) if tensor.element_size() == 1 else tensor
    timed: dict[str, Callable[[], Any]] = {"floor": memory.sum}
    for name, function in FUNCTIONS.items():
        timed[name] = lambda function=function: function(stats, tensor)
        if before is not None:
            timed[f"{name} before"] = lambda function=function: function(before, tensor)
    calls = max(1, min(100, 400_000 // tensor.numel()))
    taken = times(timed, rounds, calls)
    least = {name: min(values) for name, values in taken.items()}
    over = statistics.median(
        ours / floor for ours, floor in zip(taken["summarize"], taken["floor"], strict=True)
    )
    cells = [f"{least['floor']:8.1f}", f"{over:6.1f}"]
    for name in FUNCTIONS:
        then = f" ({least[f'{name} before']:.1f})" if before is not None else ""
        cells.append(f"{least[name]:.1f}{then}".rjust(17 if before is not None else 13))
    return "".join(cells)


def main() -> None:
    """Print a table a size: one line a dtype and layout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--before", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    before = loaded(options.before) if options.before else None
    width = 17 if before is not None else 13
    heads = "".join(name.rjust(width) for name in FUNCTIONS)
    for size in options.sizes:
        print(f"{size} elements, us".ljust(24) + "   floor  over" + heads)
        for name, tensor in tensors(size).items():
            print(name.ljust(24) + compare(tensor, before, options.rounds), flush=True)


if __name__ == "__main__":
    main()
