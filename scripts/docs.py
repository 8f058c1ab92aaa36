"""Write the pages of docs/ made from the code: one a rule, their list, quantities, audit checks.

With `--check` nothing is written; the exit code is 1 if a page is missing, old, or of no rule.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from pathlib import Path

from traindx.norm.audit.check import Needs, every_check
from traindx.quantities import QUANTITIES
from traindx.rules.catalog import catalog
from traindx.rules.page import markdown

NEEDS = {
    Needs.NOTHING: "a checkpoint or a model",
    Needs.MODEL: "a model",
    Needs.BATCH: "a model and a batch",
    Needs.DATA: "a model and a batch of its data",
}
DOCS = Path(__file__).resolve().parent.parent / "docs"
NOTE = "<!-- Made from the code by `make docs`. -->\n"


def pages() -> dict[str, str]:
    """Every generated page by its path below docs/."""
    rules = {f"rules/{rule.code}.md": markdown(rule) for rule in catalog().values()}
    lists = {"quantities.md": quantity_list(), "audit-checks.md": check_list()}
    texts = {"rules/README.md": rule_list(), **lists, **rules}
    return {name: f"{NOTE}\n{text}" for name, text in texts.items()}


def rule_list() -> str:
    """The rules with their summaries, each linked to its page."""
    rows = (
        (f"[{rule.code}]({rule.code}.md)", rule.name, rule.severity.value, rule.summary)
        for rule in catalog().values()
    )
    return f"# Rules\n\n{table(('code', 'name', 'severity', 'what it finds'), rows)}"


def quantity_list() -> str:
    """What `Run.series` can be asked for."""
    rows = ((f"`{q.name}`", q.unit, q.meaning) for q in QUANTITIES.values())
    return f"# Quantities\n\n{table(('name', 'unit', 'meaning'), rows)}"


def check_list() -> str:
    """What `traindx norm audit` looks for: a table, then each check in its own words."""
    checks = every_check()
    rows = ((f"[{c.name}](#{c.name})", c.severity.value, NEEDS[c.needs], c.summary) for c in checks)
    told = "".join(f"\n## {c.name}\n\n{inspect.getdoc(c.look)}\n" for c in checks)
    heads = ("check", "severity", "needs", "what it finds")
    return f"# What `traindx norm audit` checks\n\n{table(heads, rows)}{told}"


def table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [header, ("---",) * len(header), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |\n" for line in lines
    )


def generated() -> set[str]:
    """The pages of docs/ that were made by this script, now or before."""
    return {
        path.relative_to(DOCS).as_posix()
        for path in DOCS.rglob("*.md")
        if path.read_text(encoding="utf-8").startswith(NOTE)
    }


def is_current(name: str, text: str) -> bool:
    """Whether a page is on the disk as it should be."""
    path = DOCS / name
    return path.is_file() and path.read_text(encoding="utf-8") == text


def check() -> int:
    """Name each page that is not current."""
    wanted = pages()
    wrong = {name for name, text in wanted.items() if not is_current(name, text)}
    wrong |= generated() - set(wanted)
    for name in sorted(wrong):
        print(f"docs/{name} is not what the code says: make docs")
    return 1 if wrong else 0


def write() -> int:
    """Write each page and remove those of rules that are gone."""
    wanted = pages()
    for name in generated() - set(wanted):
        (DOCS / name).unlink()
    for name, text in wanted.items():
        (DOCS / name).parent.mkdir(parents=True, exist_ok=True)
        (DOCS / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(check() if sys.argv[1:] == ["--check"] else write())
