"""A rule's page, the same text for the terminal, the site and the report, and its data."""

from __future__ import annotations

from traindx.facts import Json
from traindx.languages import translate
from traindx.messages import say
from traindx.rules.rule import Rule

SECTIONS = (
    "Why it matters",
    "How it is measured",
    "How to fix",
    "False alarms",
    "References",
)
"""The sections of every page, in this order, after the one-sentence summary."""


def markdown(rule: Rule, language: str = "en") -> str:
    """The page of a rule, its thresholds generated from its options.

    In another language than English only the summary and the titles of the sections are.
    """
    title = f"# {rule.code} {rule.name}"
    _, _, sections = rule.page.partition("\n\n")
    for section in SECTIONS:
        sections = sections.replace(f"## {section}\n", f"## {translate(section, language)}\n")
    parts = [title, f"*{'; '.join(_traits(rule))}*", summary(rule, language), sections]
    if rule.options:
        rows = [f"| `{name}` | {default:g} |" for name, default in rule.options.items()]
        options = translate(say("Options"), language)
        heads = translate(say("| option | default |"), language)
        parts.append("\n".join((f"## {options}", "", heads, "|---|---|", *rows)))
    return "\n\n".join(parts) + "\n"


def summary(rule: Rule, language: str = "en") -> str:
    """What the rule sees, in one sentence; in English as it stands on the page."""
    return rule.page.partition("\n\n")[0] if language == "en" else translate(rule.summary, language)


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
        "lasting": rule.lasting,
        "silent_in": list(rule.silent_in),
        "explained_by": list(rule.explained_by),
        "remedies": list(rule.remedies),
        "lifecycle": rule.lifecycle,
    }


def _traits(rule: Rule) -> list[str]:
    traits = [rule.severity.value, rule.lifecycle]
    if rule.source != "passive":  # measured in training itself, as nearly all is
        traits.append(f"from {rule.source}")
    if rule.hits > 1:
        traits.append(f"after {rule.hits} measured steps in a row")
    if rule.lasting:
        traits.append("rests between neighbouring steps")
    if rule.silent_in:
        traits.append(f"silent in {', '.join(rule.silent_in)}")
    if rule.reads:
        traits.append(f"reads {', '.join(rule.reads)}")
    return traits
