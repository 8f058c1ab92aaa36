"""`traindx diff`: what changed between two runs, for the terminal and for other programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from traindx import __version__
from traindx.facts import Json
from traindx.findings import Finding
from traindx.messages import Message, counted, listed, say
from traindx.records import Site
from traindx.report import story
from traindx.report.comparison import (
    ENDING,
    Comparison,
    LossChange,
    MedianChange,
    SettingChange,
)
from traindx.report.json import dumped
from traindx.report.layers import where
from traindx.report.text import STYLES, Layout, painted
from traindx.report.untrusted import plain, told
from traindx.report.wrapping import padded, width_of
from traindx.run import Run

SCHEMA = 1
MOST = 12
"""Measurements and settings that are told, the greatest changes first."""


def render(
    before: Run,
    after: Run,
    comparison: Comparison,
    *,
    width: int = 88,
    color: bool = False,
    language: str = "en",
) -> str:
    """The comparison for a person."""
    page = _Comparison(before, after, comparison, max(width, 60), language)
    return painted(page.lines(), color=color)


class _Comparison(Layout):
    """The layout of a comparison."""

    def __init__(
        self, before: Run, after: Run, comparison: Comparison, width: int, language: str
    ) -> None:
        super().__init__(width, language)
        self._before = before
        self._after = after
        self._it = comparison

    def lines(self) -> Iterator[Text]:
        it = self._it
        counts = say(
            "{gone} gone, {new} new, {same} in both runs",
            gone=counted(len(it.gone), "{n} finding", "{n} findings"),
            new=len(it.new),
            same=len(it.same),
        )
        worst = min((f.severity for f in it.new), key=lambda s: s.rank, default=None)
        yield from self.title(counts, STYLES[worst.value] if worst else "bold")
        for label, run in ((say("before"), self._before), (say("after"), self._after)):
            yield from self.field(label, _run_words(run))
        yield from self._findings(say("gone"), self._before, it.gone)
        yield from self._findings(say("new"), self._after, it.new)
        yield from self.list(say("in both"), [self._same(*pair) for pair in it.same])
        yield from self._losses()
        yield from self._medians()
        yield from self.list(say("set otherwise"), self._settings())

    def _findings(self, title: Message, run: Run, found: Sequence[Finding]) -> Iterator[Text]:
        lines = [
            say(
                "{severity} {finding}",
                severity=story.severity_word(finding.severity),
                finding=story.brief(run, finding),
            )
            for finding in found
        ]
        return self.list(title, lines)

    def _same(self, old: Finding, new: Finding) -> Message:
        numbers = listed(
            say(
                "{name} {before} -> {after}",
                name=plain(name),
                before=story.number(old.evidence.numbers[name]),
                after=story.number(value),
            )
            for name, value in new.evidence.numbers.items()
            if name in old.evidence.numbers and old.evidence.numbers[name] != value
        )
        return say(
            "{what} at {where}: {reason}",
            what=plain(f"{new.code} {new.name}"),
            where=where(self._after, new.evidence.site),
            reason=numbers or say("with the same numbers"),
        )

    def _losses(self) -> Iterator[Text]:
        for loss in self._it.losses:
            yield Text()
            name = plain(loss.site.model)
            yield from self.title(say("the loss of {model}", model=name) if name else say("loss"))
            heads = [say("step {step}", step=step) for step in loss.steps]
            heads.append(say("end (mean of {n})", n=ENDING))
            yield from self._table(
                heads,
                (say("before"), (*loss.before, loss.end_before)),
                (say("after"), (*loss.after, loss.end_after)),
            )

    def _table(
        self, heads: Sequence[Message], *rows: tuple[Message, Sequence[float]]
    ) -> Iterator[Text]:
        """Numbers under their heads, each column as wide as its widest entry."""
        labels = [told(label, self.language) for label, _ in rows]
        cells = [[told(story.number(n), self.language) for n in numbers] for _, numbers in rows]
        above = [told(head, self.language) for head in heads]
        widths = [max(map(width_of, column)) for column in zip(above, *cells, strict=True)]
        indent = max(map(width_of, labels))
        for label, row in zip(["", *labels], [above, *cells], strict=True):
            text = "".join(
                "  " + " " * (width - width_of(cell)) + cell
                for cell, width in zip(row, widths, strict=True)
            )
            yield Text.assemble("  ", (padded(label, indent), "dim"), text)

    def _medians(self) -> Iterator[Text]:
        changes = self._it.medians
        yield from self.list(say("measured otherwise"), [self._median(c) for c in changes[:MOST]])
        if not changes:
            return
        if rest := len(changes) - MOST if len(changes) > MOST else 0:
            yield from self.entry(say("and {n} more", n=rest))
        note = say(
            "medians over the later half of the measured steps, up to the end of the shorter run; "
            "told where the middle 80 % of the values do not overlap and the medians differ by a "
            "fourth or more"
        )
        for line in self.entry(note):
            line.stylize("dim")
            yield line

    def _median(self, change: MedianChange) -> Message:
        return say(
            "{quantity} at {where}: {before} -> {after}",
            quantity=change.quantity,
            where=where(self._after, change.site),
            before=story.number(change.before),
            after=story.number(change.after),
        )

    def _settings(self) -> list[Message]:
        changes = self._it.settings
        told_changes = [self._setting(change) for change in changes[:MOST]]
        rest = len(changes) - MOST
        return [*told_changes, say("and {n} more", n=rest)] if rest > 0 else told_changes

    def _setting(self, change: SettingChange) -> Message:
        words = say(
            "{name} {before} -> {after}",
            name=plain(change.name),
            before=_value(change.before),
            after=_value(change.after),
        )
        if not change.sites:
            return words
        places = story.listed_names([_name(site) for site in change.sites], most=4)
        return say("{what} ({places})", what=words, places=places)


def _name(site: Site) -> str:
    return plain(site.fqn or site.model)


def _value(value: Json) -> str:
    if value is None:
        return say("none")
    if isinstance(value, list):
        return plain(" ".join(map(str, value)))
    return story.number(value) if isinstance(value, float) else plain(str(value))


def _run_words(run: Run) -> Message:
    name = plain(str(run.path)) if run.path else say("a run that was not saved")
    return say("{what}: {reason}", what=name, reason=story.headline(run))


# -- for other programs --------------------------------------------------------------------------


def document(before: Run, after: Run, comparison: Comparison) -> str:
    """The comparison as JSON, described in docs/json.md."""
    found: dict[str, Json] = {
        "schema": SCHEMA,
        "tool": {"name": "traindx", "version": __version__},
        "before": str(before.path) if before.path else None,
        "after": str(after.path) if after.path else None,
        "gone": [_finding(f) for f in comparison.gone],
        "new": [_finding(f) for f in comparison.new],
        "same": [{"before": _finding(a), "after": _finding(b)} for a, b in comparison.same],
        "losses": [_loss(loss) for loss in comparison.losses],
        "medians": [_median(change) for change in comparison.medians],
        "settings": [_setting(change) for change in comparison.settings],
    }
    return dumped(found)


def _finding(finding: Finding) -> dict[str, Json]:
    site = finding.evidence.site
    return {
        "fingerprint": finding.fingerprint,
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "model": site.model,
        "site": site.fqn,
        "message": str(finding.evidence.message),
        "evidence": dict(finding.evidence.numbers),
    }


def _loss(loss: LossChange) -> dict[str, Json]:
    return {
        "model": loss.site.model,
        "steps": list(loss.steps),
        "before": list(loss.before),
        "after": list(loss.after),
        "end_before": loss.end_before,
        "end_after": loss.end_after,
    }


def _median(change: MedianChange) -> dict[str, Json]:
    return {
        "quantity": change.quantity,
        "model": change.site.model,
        "site": change.site.fqn,
        "before": change.before,
        "after": change.after,
    }


def _setting(change: SettingChange) -> dict[str, Json]:
    return {
        "name": change.name,
        "before": change.before,
        "after": change.after,
        "sites": [{"model": site.model, "site": site.fqn} for site in change.sites],
    }
