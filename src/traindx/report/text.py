"""The report on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import StringIO
from typing import TextIO

from rich.console import Console
from rich.text import Text

from traindx.findings import Finding
from traindx.report import story
from traindx.report.layers import where
from traindx.report.story import Root
from traindx.report.untrusted import plain, plain_lines
from traindx.run import Run

_STYLES = {"error": "bold red", "warning": "bold yellow", "info": "bold blue"}
_INDENT = 2
_LABEL = 10


def wants_color(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether a stream shows colour and its reader has not refused it (https://no-color.org)."""
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def render(run: Run, *, width: int = 88, color: bool = False) -> str:
    """The verdict, the findings with cause and fix, and what could not be looked at."""
    # An empty environment: what the text looks like is decided by the arguments alone.
    console = Console(
        file=StringIO(),
        width=max(width, 40),
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        legacy_windows=False,
        _environ={},
    )
    with console.capture() as capture:
        for line in _report(run, console):
            console.print(line, soft_wrap=True)
    return capture.get().rstrip("\n")


def _report(run: Run, console: Console) -> Iterator[Text]:
    yield from _headline(run).wrap(console, console.width)
    verdict = story.judged(run)
    for root in story.roots(verdict):
        yield Text()
        yield from _root(run, root, console)
    yield from _list("cleared", [_brief(run, f) for f in story.cleared(verdict)], console)
    unevaluated = [f"{codes}: {reason}" for reason, codes in story.unevaluated(run)]
    yield from _list("not evaluated", unevaluated, console)
    yield from _list("not measured", story.unmeasured(run), console)
    yield from _list("notes", story.notes(run), console)
    yield from _list("run", [line for line in (story.cost(run), _file(run)) if line], console)


def _headline(run: Run) -> Text:
    return Text(story.headline(run), style=_STYLES.get(story.level(run), "bold"))


def _file(run: Run) -> str:
    return plain(str(run.path)) if run.path else ""


def _root(run: Run, root: Root, console: Console) -> Iterator[Text]:
    finding = root.finding
    style = _STYLES[finding.severity.value]
    yield Text.assemble(
        (finding.severity.value, style), " ", (plain(f"{finding.code} {finding.name}"), "bold")
    )
    yield from _explanation(run, finding, console)
    for symptom in root.symptoms:
        yield from _field("explains", _brief(run, symptom), console)


def _explanation(run: Run, finding: Finding, console: Console) -> Iterator[Text]:
    evidence = finding.evidence
    yield from _field("where", where(run, evidence.site), console)
    yield from _field("what", plain(evidence.message), console)
    yield from _field("numbers", "; ".join(story.measures(finding)), console)
    yield from _field("why", plain(evidence.cause), console)
    yield from _fix(evidence.fix)
    yield from _field("excluded", "; ".join(map(plain, evidence.excluded)), console)
    yield from _field("seen", story.seen(finding), console)


def _fix(fix: str) -> Iterator[Text]:
    """Not wrapped: it is there to be pasted."""
    for i, line in enumerate(plain_lines(fix) if fix else ()):
        yield _labelled("" if i else "fix", Text(line, style="green"))


def _brief(run: Run, finding: Finding) -> str:
    """A finding in one line."""
    at = where(run, finding.evidence.site)
    return f"{plain(f'{finding.code} {finding.name}')} at {at}: {plain(finding.evidence.message)}"


def _list(title: str, lines: list[str], console: Console) -> Iterator[Text]:
    if lines:
        yield Text()
        yield Text(title, style="bold")
    for line in lines:
        for i, part in enumerate(Text(line).wrap(console, console.width - _INDENT - 2)):
            yield _stripped(" " * _INDENT, "- " if i == 0 else "  ", part)


def _field(label: str, body: str, console: Console) -> Iterator[Text]:
    """The body beside its label, wrapped; nothing where there is nothing to say."""
    if not body:
        return
    for part in Text(body).wrap(console, console.width - _INDENT - _LABEL):
        yield _labelled(label, part)
        label = ""


def _labelled(label: str, body: Text) -> Text:
    return _stripped(" " * _INDENT, (label.ljust(_LABEL), "dim"), body)


def _stripped(*parts: str | Text | tuple[str, str]) -> Text:
    line = Text.assemble(*parts)
    line.rstrip()
    return line
