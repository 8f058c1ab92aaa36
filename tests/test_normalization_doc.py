"""docs/normalization.md: what it shows is what the commands print."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_readme import same
from traindx.demo import targets

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "normalization.md").read_text(encoding="utf-8")
SESSIONS = re.findall(r"^```console\n\$ (.*?)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
COMMANDS = {"traindx": (sys.executable, "-m", "traindx"), "python": (sys.executable,)}


def words_of(text: str) -> list[str]:
    """Without numbers and the order of the rows that they make."""
    return sorted(re.findall(r"[a-z]{2,}", text))


def without_chance(text: str) -> str:
    """Without what a net with stale statistics guesses right: each processor rounds differently."""
    return re.sub(r"test accuracy 0\.[0-3]\d+", "test accuracy", text)


def test_the_target_stands_there_as_it_is() -> None:
    (shown,) = re.findall(r"^```python\n(from torch.utils.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    imports, function = shown.split("\n\n\n")
    source = Path(targets.__file__).read_text(encoding="utf-8")
    assert function.strip() in source
    assert [line for line in imports.splitlines() if line not in source] == []


def test_every_link_leads_somewhere() -> None:
    names = re.findall(r"\]\(([^)#]+)", TEXT)
    assert names
    assert [name for name in names if not (ROOT / "docs" / name).exists()] == []


@pytest.mark.slow
def test_every_command_prints_what_is_shown(tmp_path: Path) -> None:
    """In their order: later ones read what earlier ones have saved."""
    assert len(SESSIONS) > 5
    environment = {**os.environ, "COLUMNS": "88"}
    for line, shown in SESSIONS:
        first, *words = shlex.split(line)
        done = subprocess.run(
            [*COMMANDS[first], *words],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        said = done.stdout.strip()
        # What is left after the repair is chance and rounding: its numbers may be others.
        equal = (
            words_of(shown) == words_of(said)
            if "--checkpoint fresh.pt" in line
            else same(without_chance(shown), without_chance(said), 3 * ("stale.pt" in line))
        )
        assert equal, f"{line}\n{said}\n{done.stderr}"
