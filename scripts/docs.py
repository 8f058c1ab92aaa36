"""Write the pages of docs/ made from the code: one a rule, their list, quantities, audit checks.

With `--check` nothing is written; the exit code is 1 if a page is missing, old, or of no rule.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from traindx.norm.audit.check import Needs, every_check
from traindx.quantities import QUANTITIES
from traindx.rules.catalog import catalog
from traindx.rules.page import markdown
from traindx.rules.rule import Rule

NEEDS = {
    Needs.NOTHING: "a checkpoint or a model",
    Needs.MODEL: "a model",
    Needs.BATCH: "a model and a batch",
    Needs.DATA: "a model and a batch of its data",
}
DOCS = Path(__file__).resolve().parent.parent / "docs"
DETECTION = DOCS.parent / "benchmarks" / "results" / "detection.json"
NOTE = "<!-- Made from the code by `make docs`. -->\n"


def pages() -> dict[str, str]:
    """Every generated page by its path below docs/."""
    rules = {f"rules/{rule.code}.md": page(rule, counted()) for rule in catalog().values()}
    lists = {"quantities.md": quantity_list(), "audit-checks.md": check_list()}
    texts = {"rules/README.md": rule_list(), **lists, **rules}
    return {name: f"{NOTE}\n{text}" for name, text in texts.items()}


def counted() -> dict[str, Any]:
    """What `benchmarks/detection.py --write` counted last; empty if it has not been run."""
    return json.loads(DETECTION.read_text(encoding="utf-8")) if DETECTION.exists() else {}


def page(rule: Rule, counts: dict[str, Any]) -> str:
    """The page of a rule, with how often it was right in the zoo."""
    count = counts.get("rules", {}).get(rule.code)
    return markdown(rule) + (f"\n{in_the_zoo(count, counts)}" if count else "")


def in_the_zoo(count: dict[str, Any], counts: dict[str, Any]) -> str:
    """How often a rule found its faults, and accused healthy runs, in the benchmark's words."""
    halves = " and ".join(counts["halves"])
    seeds = f"{counts['seeds']} seed{'s' * (counts['seeds'] != 1)}"
    found = (
        f"Of {count['runs']} runs of {count['programs']} programs with this fault it found "
        f"{count['found']}, and {count['first']} as the first cause."
        if count["runs"]
        else "No program there has this fault."
    )
    return (
        f"## In the zoo\n\n{found} In {count['healthy_runs']} healthy runs it warned "
        f"{count['false_alarms']} times: with 95 % confidence in less than "
        f"{count['alarm_bound']:.1%} of such runs, and in less than "
        f"{count['program_bound']:.1%} of such programs. Counted by "
        f"[benchmarks/detection.py](../detection.md), {seeds}, {halves} half.\n"
    )


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
