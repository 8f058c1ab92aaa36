"""What the machine and the versions were."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any


def load() -> str:
    """How busy the machine is: over one minute, five and fifteen."""
    return " ".join(f"{value:.1f}" for value in os.getloadavg())


def beginning(threads: int = 1) -> Callable[[], dict[str, Any]]:
    """Note when something begins; the function returned tells of it all when it is over."""
    before, start = load(), time.time()

    def over() -> dict[str, Any]:
        import torch

        import traindx

        return {
            "command": " ".join(["python", *_shown(sys.argv)]),
            "when": time.strftime("%Y-%m-%d", time.gmtime(start)),
            "minutes": round((time.time() - start) / 60, 1),
            "traindx": traindx.__version__,
            "torch": str(torch.__version__),
            "python": platform.python_version(),
            "threads": threads,
            "cpus": os.cpu_count(),
            "cpu": _cpu(),
            "load": [before, load()],
        }

    return over


def _shown(arguments: list[str]) -> list[str]:
    """The command line without the place of this folder."""
    root = Path(__file__).resolve().parents[2]
    script = Path(arguments[0]).resolve()
    return [str(script.relative_to(root)) if script.is_relative_to(root) else script.name,
            *arguments[1:]]  # fmt: skip


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return " ".join(names[0].split()) if names else platform.machine()


def version(module: str) -> str:
    """The version of the distribution a module comes from."""
    names = metadata.packages_distributions().get(module)
    return metadata.version(names[0]) if names else "?"
