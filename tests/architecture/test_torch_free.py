"""Everything but what measures works where torch is not installed."""

import pkgutil
import subprocess
import sys

import pytest

import traindx

MEASURING = (
    "traindx.capture",
    "traindx.demo",
    "traindx.distributed",
    "traindx.norm.modules",
    "traindx.nested",
    "traindx.norm.sheet_torch",
    "traindx.preflight",
    "traindx.stats",
    "traindx.testing",
    "traindx.trial",
    "traindx.trials",
)
WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import {module}
"""


def is_measuring(module: str) -> bool:
    return any(f"{module}.".startswith(f"{name}.") for name in MEASURING)


# By name alone: importing a package to look inside it would be the test itself.
def modules_under(paths: list[str], prefix: str) -> list[str]:
    found: list[str] = []
    for info in pkgutil.iter_modules(paths, prefix):
        found.append(info.name)
        if info.ispkg:
            folders = [f"{path}/{info.name.rpartition('.')[2]}" for path in paths]
            found += modules_under(folders, f"{info.name}.")
    return found


ALL = modules_under(list(traindx.__path__), "traindx.")


def test_every_module_that_measures_nothing_imports_without_torch() -> None:
    free = [name for name in ALL if not is_measuring(name) and not name.endswith("__main__")]
    assert len(free) > 20
    code = WITHOUT_TORCH.format(module=", ".join(free))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", ["traindx.capture", "traindx.rules", "traindx.store"])
def test_the_walk_over_the_modules_finds_them(module: str) -> None:
    assert module in ALL
    assert any(name.startswith(f"{module}.") for name in ALL)


@pytest.mark.parametrize(
    "command",
    [
        "run script.py",
        "preflight script.py",
        "signal package.module:name",
        "demo",
        "norm audit package.module:name",
        "norm recalibrate package.module:name",
        "norm fold package.module:name",
    ],
)
def test_a_command_that_measures_says_in_one_sentence_that_there_is_no_torch(command: str) -> None:
    code = WITHOUT_TORCH.format(module="traindx.cli.main") + "traindx.cli.main.main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *command.split()], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("traindx: This needs PyTorch, which is not installed here.")
    assert done.stderr.count("\n") == 1
