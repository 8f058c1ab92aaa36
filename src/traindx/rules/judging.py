"""What a user asks of the engine: which rules, with which thresholds, and what to pass over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from traindx.errors import UsageError
from traindx.findings import Finding
from traindx.messages import say
from traindx.records import Site
from traindx.rules.catalog import catalog, find
from traindx.rules.rule import Rule

Options = Mapping[str, Mapping[str, float]]
"""Thresholds that differ from their defaults: by code, then by option."""


@dataclass(frozen=True, slots=True)
class Ignore:
    """Findings to pass over: those of some rules, everywhere or at some sites.

    Attributes:
        codes: The rules.
        sites: A pattern of `model.fqn`, `fqn` or an optimizer's name; `*` matches all.
        text: As the user wrote it.
        source: Where the user wrote it.
    """

    codes: frozenset[str]
    sites: str
    text: str
    source: str

    def covers(self, code: str, site: Site) -> bool:
        """Whether a finding of this rule at this site is passed over."""
        return code in self.codes and any(fnmatchcase(n, self.sites) for n in _names(site))


def _names(site: Site) -> tuple[str, str]:
    return ".".join(part for part in site if part), site.fqn or site.model


@dataclass(frozen=True, slots=True)
class Judging:
    """How to judge.

    Attributes:
        select: Codes of the rules to apply; all if None.
        thresholds: Thresholds in place of their defaults.
        ignore: Findings to pass over.
        known: Fingerprints of the findings of a baseline.
        baseline: The file of the baseline.
        contexts: Names of declared contexts, each with its source.
    """

    select: frozenset[str] | None = None
    thresholds: Options = field(default_factory=dict[str, Mapping[str, float]])
    ignore: tuple[Ignore, ...] = ()
    known: frozenset[str] = frozenset()
    baseline: str = ""
    contexts: tuple[tuple[str, str], ...] = ()

    def selected(self, rule: Rule) -> bool:
        """Whether the user wants this rule applied."""
        return self.select is None or rule.code in self.select

    def passed_over(self, finding: Finding) -> str:
        """Why the user does not want to see a finding, empty if they do."""
        site = finding.evidence.site
        for entry in self.ignore:
            if entry.covers(finding.code, site):
                return say(
                    "ignored by {source}: {entry}",
                    source=entry.source,
                    entry=entry.text,
                )
        if finding.fingerprint in self.known:
            return say("known: in the baseline {file}", file=self.baseline)
        return ""


def codes_of(words: Iterable[str]) -> frozenset[str]:
    """The codes that some words stand for: codes, names, or the beginning of codes (`N`, `G0`).

    Raises:
        UsageError: One stands for no rule.
    """
    return frozenset(code for word in words for code in _codes(word))


def _codes(word: str) -> list[str]:
    start = word.strip().upper()
    codes = [code for code in catalog() if start and code.startswith(start)]
    return codes or [find(word).code]


def ignoring(text: str, source: str) -> Ignore:
    """An entry of `ignore`: `N003`, `N` or `N003@backbone.*`.

    Raises:
        UsageError: It names no rule, or no site after its `@`.
    """
    rules, at, sites = text.strip().partition("@")
    if at and not sites.strip():
        raise UsageError(
            say("`{entry}` names no site after its `@`; `*` stands for every one.", entry=text)
        )
    return Ignore(frozenset(_codes(rules)), sites.strip() or "*", text.strip(), source)
