"""How fast traindx starts, and what it does not load."""

import subprocess
import sys
import time
from pathlib import Path

HEAVY = ("torch", "numpy", "plotly", "rich", "typer", "sqlite3")
IMPORT = """
import sys, time
start = time.perf_counter()
import traindx
print(time.perf_counter() - start, *sorted({name.partition(".")[0] for name in sys.modules}))
"""


def imported() -> tuple[float, set[str]]:
    command = [sys.executable, "-c", IMPORT]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds, *modules = printed.split()
    return float(seconds), set(modules)


def test_importing_traindx_takes_under_a_tenth_of_a_second() -> None:
    assert min(imported()[0] for _ in range(5)) < 0.1


def test_importing_traindx_loads_nothing_heavy() -> None:
    assert not imported()[1].intersection(HEAVY)


def seconds_of(*arguments: str) -> float:
    command = [str(Path(sys.executable).with_name("traindx")), *arguments]
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def test_a_rule_page_takes_under_half_a_second() -> None:
    assert min(seconds_of("rule", "N001") for _ in range(5)) < 0.5
