"""How fast traindx starts, and what it does not load."""

import resource
import subprocess
import sys
from pathlib import Path

TRIES = 20  # the least of them counts: on a busy machine even processor time is lengthened
HEAVY = ("torch", "numpy", "plotly", "rich", "typer", "sqlite3")
IMPORT = """
import sys, time
start = time.process_time()
import traindx
print(time.process_time() - start, *sorted({name.partition(".")[0] for name in sys.modules}))
"""


def imported() -> tuple[float, set[str]]:
    command = [sys.executable, "-c", IMPORT]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds, *modules = printed.split()
    return float(seconds), set(modules)


def test_importing_traindx_takes_under_a_tenth_of_a_second() -> None:
    assert any(imported()[0] < 0.1 for _ in range(TRIES))


def test_importing_traindx_loads_nothing_heavy() -> None:
    assert not imported()[1].intersection(HEAVY)


def seconds_of(*arguments: str) -> float:
    """Processor time, which other programs on the machine do not lengthen as they do wall time."""
    command = [str(Path(sys.executable).with_name("traindx")), *arguments]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_a_rule_page_takes_under_half_a_second() -> None:
    assert any(seconds_of("rule", "N001") < 0.5 for _ in range(TRIES))
