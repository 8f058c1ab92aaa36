"""docs/conversion.md: what it shows is what the commands print, and what they do."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.norm.convert.table import kinds, refusals
from tests.zoo.forks import Forks
from traindx.norm.convert import proof
from traindx.norm.convert.converting import _ASKED  # pyright: ignore[reportPrivateUsage]
from traindx.norm.convert.frameworks.catalog import FRAMEWORKS

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "conversion.md").read_text(encoding="utf-8")
SESSIONS = re.findall(r"^```console\n\$ traindx (.*?)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_every_command_prints_what_is_shown(tmp_path: Path, forks: Forks) -> None:
    """In their order: later ones read what earlier ones have saved."""
    assert len(SESSIONS) == 3
    for line, shown in SESSIONS:
        done = forks.run(tmp_path, *shlex.split(line), watched=True, COLUMNS="88")
        assert done.stdout.strip() == shown.strip(), done.stderr


def test_the_tables_are_what_conversions_say() -> None:
    for row in (*kinds(), *refusals()):
        assert row in TEXT


def test_every_file_that_is_written_stands_there() -> None:
    for framework in FRAMEWORKS.values():
        for suffix in framework.suffixes:
            assert f"`{suffix}`" in TEXT


def test_the_numbers_of_the_proof_stand_there() -> None:
    assert f"rounding, {proof.ROUNDINGS} eps" in TEXT
    assert f"the first {_ASKED} layers" in TEXT


def test_every_link_leads_somewhere() -> None:
    names = re.findall(r"\]\(([^)#]+)", TEXT)
    assert [name for name in names if not (ROOT / "docs" / name).exists()] == []
