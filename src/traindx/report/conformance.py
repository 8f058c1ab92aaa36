"""`traindx norm conformance`: what each target does otherwise, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from traindx.findings import Severity
from traindx.messages import Message, counted, listed, say
from traindx.norm.conformance.matrix import (
    LayerResult,
    Matrix,
    Shown,
    TargetResult,
    worst_verdict,
)
from traindx.norm.conformance.study import Verdict
from traindx.report import story
from traindx.report.text import STYLES, Layout, painted
from traindx.report.untrusted import plain, told
from traindx.report.wrapping import columns, padded, width_of


def render(matrix: Matrix, *, width: int = 88, color: bool = False, language: str = "en") -> str:
    """The table of all targets, then what each does otherwise."""
    return painted(_Page(max(width, 60), language).lines(matrix), color=color)


def headline(target: TargetResult) -> Message:
    """A target and how many differences it has."""
    return say(
        "{name} ({version}): {errors}, {warnings}, {notes}",
        name=target.name,
        version=target.version,
        errors=counted(_many(target.differences, Severity.ERROR), "{n} error", "{n} errors"),
        warnings=counted(
            _many(target.differences, Severity.WARNING), "{n} warning", "{n} warnings"
        ),
        notes=counted(_many(target.differences, Severity.INFO), "{n} note", "{n} notes"),
    )


def cell(target: TargetResult, kind: str) -> str:
    """What a table says of one family of a target: errors, warnings, notes; `-` if it has none."""
    layers = [layer.layer for layer in target.layers if layer.kind == kind]
    if not layers:
        return "-"
    found = [one for layer in layers for one in target.of(layer)]
    counts = [_many(found, severity) for severity in Severity]
    return " ".join(f"{n}{letter}" for n, letter in zip(counts, "EWN", strict=True) if n) or "ok"


def kinds(matrix: Matrix) -> list[str]:
    """The families that any target has."""
    return list(dict.fromkeys(layer.kind for one in matrix.targets for layer in one.layers))


def numbers(values: Sequence[float | str]) -> str:
    """The first numbers of an array."""
    return " ".join(value if isinstance(value, str) else f"{value:.9g}" for value in values)


def _many(found: Sequence[Shown], severity: Severity) -> int:
    return sum(one.severity == severity.value for one in found)


class _Page(Layout):
    """The layout of a matrix."""

    def lines(self, matrix: Matrix) -> Iterator[Text]:
        if len(matrix.targets) > 1:
            yield from self._table(matrix)
            yield Text()
        for i, target in enumerate(matrix.targets):
            if i:
                yield Text()
            yield from self._target(target)
        missing = [
            say("{name}: {reason}", name=plain(name), reason=why)
            for name, why in matrix.missing.items()
        ]
        yield from self.list(say("not installed"), missing)

    def _table(self, matrix: Matrix) -> Iterator[Text]:
        """Families by targets, some targets a block so that it fits."""
        rows = kinds(matrix)
        name = max(map(width_of, rows))
        wide = max(width_of(target.name) for target in matrix.targets) + 2
        block = max((self.width - name - 2) // wide, 1)
        for start in range(0, len(matrix.targets), block):
            some = matrix.targets[start : start + block]
            cells = [[cell(target, kind) for target in some] for kind in rows]
            table = columns([plain(target.name) for target in some], cells)
            yield Text.assemble("  ", (" " * name + table[0], "bold"))
            for kind, row in zip(rows, table[1:], strict=True):
                yield Text.assemble("  ", padded(kind, name), row)
        yield from self.entry(say("E errors, W warnings, N notes; - has no such layer"))

    def _target(self, target: TargetResult) -> Iterator[Text]:
        worst = target.differences[0].severity if target.differences else ""
        yield from self.title(headline(target), STYLES.get(worst, "bold green"))
        plainly = [one for one in target.differences if one.severity != Severity.INFO.value]
        for difference in plainly:
            yield Text()
            yield from self._difference(difference)
        notes = [one for one in target.differences if one.severity == Severity.INFO.value]
        yield from self.list(say("conventions and limits"), [_line(one) for one in notes])
        yield from self.list(say("compared"), [_compared(layer) for layer in target.layers])
        lacking = [line for layer in target.layers for line in _lacking(layer)]
        yield from self.list(say("not asked"), lacking)

    def _difference(self, one: Shown) -> Iterator[Text]:
        severity = told(story.severity_word(Severity(one.severity)), self.language)
        yield Text.assemble(
            (severity, STYLES[one.severity]), " ", (plain(f"{one.layer} {one.name}"), "bold")
        )
        yield from self.field(say("where"), _where(one))
        yield from self.field(say("what"), one.text)
        if one.got:
            yield from self.field(say("got"), numbers(one.got))
        if one.expected:
            yield from self.field(say("expected"), numbers(one.expected))


def _where(one: Shown) -> Message:
    return say(
        "{part}, {verdict}; smallest input of shape {shape}; in {questions}",
        part=one.part,
        verdict=one.verdict,
        shape=one.shape,
        questions=counted(one.seen, "{n} question", "{n} questions"),
    )


def _line(one: Shown) -> Message:
    return say("{layer}: {text}", layer=plain(one.layer), text=Message(plain(one.text)))


def _compared(layer: LayerResult) -> Message:
    order = [verdict.value for verdict in Verdict]
    counts = [
        say("{n} {verdict}", n=layer.verdicts[v], verdict=v) for v in order if v in layer.verdicts
    ]
    return say(
        "{layer}: {counts}; worst {verdict}",
        layer=plain(layer.layer),
        counts=listed(counts),
        verdict=worst_verdict(layer).value,
    )


def _lacking(layer: LayerResult) -> Iterator[Message]:
    """Each reason once, with what it keeps from being asked."""
    for reason in dict.fromkeys(layer.lacks.values()):
        what = [plain(name) for name, why in layer.lacks.items() if why == reason]
        yield say(
            "{layer}, {what}: {reason}",
            layer=plain(layer.layer),
            what=listed(what),
            reason=plain(reason),
        )
