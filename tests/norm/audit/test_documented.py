"""The page of the checks is what the checks say of themselves."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

from traindx.norm.audit.check import every_check

ROOT = Path(__file__).parents[3]
SCRIPT: dict[str, Any] = runpy.run_path(str(ROOT / "scripts" / "docs.py"))
PAGE = "audit-checks.md"


def test_the_page_is_current() -> None:
    """`make docs` writes it."""
    assert SCRIPT["is_current"](PAGE, SCRIPT["pages"]()[PAGE])


def test_each_check_has_a_row_and_a_section() -> None:
    text = SCRIPT["pages"]()[PAGE]
    names = [each.name for each in every_check()]
    assert re.findall(r"^\| \[(.*?)\]", text, re.MULTILINE) == names
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == names
