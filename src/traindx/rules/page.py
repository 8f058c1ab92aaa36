"""A rule's page, the same text for the terminal, the site and the report, and its data."""

from __future__ import annotations

from traindx.facts import Json
from traindx.rules.rule import Rule

SECTIONS = (
    "Why it matters",
    "How it is measured",
    "How to fix",
    "False alarms",
    "References",
)
"""The sections of every page, in this order, after the one-sentence summary."""


def markdown(rule: Rule) -> str:
    """The page of a rule, its thresholds generated from its options."""
    title = f"# {rule.code} {rule.name}"
    parts = [title, f"*{'; '.join(_traits(rule))}*", rule.page]
    if rule.options:
        rows = [f"| `{name}` | {default:g} |" for name, default in rule.options.items()]
        parts.append("\n".join(("## Options", "", "| option | default |", "|---|---|", *rows)))
    return "\n\n".join(parts) + "\n"


def entry(rule: Rule) -> dict[str, Json]:
    """What there is to know of a rule, as data."""
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity.value,
        "summary": rule.summary,
        "source": rule.source,
        "reads": list(rule.reads),
        "options": dict(rule.options),
        "hits": rule.hits,
        "explained_by": list(rule.explained_by),
        "remedies": list(rule.remedies),
        "lifecycle": rule.lifecycle,
    }


def _traits(rule: Rule) -> list[str]:
    traits = [rule.severity.value, rule.source, rule.lifecycle]
    if rule.hits > 1:
        traits.append(f"after {rule.hits} measured steps in a row")
    if rule.reads:
        traits.append(f"reads {', '.join(rule.reads)}")
    return traits
