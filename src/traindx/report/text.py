"""The report on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from typing import TextIO

from rich.console import Console
from rich.text import Text

from traindx.findings import Finding
from traindx.languages import translate
from traindx.messages import Message, in_turn, say
from traindx.report import story
from traindx.report.layers import where
from traindx.report.story import Root
from traindx.report.untrusted import plain, plain_lines, told
from traindx.report.wrapping import padded, wrapped
from traindx.run import Run

TOP = 3
"""Roots that are told in full; the others get a line each."""
STYLES = {"error": "bold red", "warning": "bold yellow", "info": "bold blue"}
_INDENT = 2
_LABEL = 10


def wants_color(stream: TextIO | None, environ: Mapping[str, str]) -> bool:
    """Whether a stream shows colour and its reader has not refused it (https://no-color.org)."""
    if stream is None:
        return False
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def render(run: Run, *, width: int = 88, color: bool = False, language: str = "en") -> str:
    """The verdict, the findings with cause and fix, and what could not be looked at."""
    width = max(width, 40)
    return painted(_Report(run, width, language).lines(), color=color)


def painted(lines: Iterator[Text], *, color: bool) -> str:
    """Lines as text for a terminal, by nothing but the arguments: no environment is read."""
    console = Console(
        file=StringIO(),
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        legacy_windows=False,
        _environ={},
    )
    with console.capture() as capture:
        for line in lines:
            line.rstrip()
            console.print(line, soft_wrap=True)
    return capture.get().rstrip("\n")


class Layout:
    """How everything for the terminal is laid out: titles, labelled fields and lists."""

    def __init__(self, width: int, language: str) -> None:
        self.width = width
        self.language = language

    def title(self, text: str, style: str = "bold") -> Iterator[Text]:
        """A line or more of its own."""
        for line in wrapped(told(text, self.language), self.width):
            yield Text(line, style=style)

    def field(self, label: Message, body: str) -> Iterator[Text]:
        """The body beside its label, wrapped; nothing where there is nothing to say."""
        words = told(body, self.language)
        for i, line in enumerate(wrapped(words, self.width - _INDENT - _LABEL) if words else ()):
            yield self.labelled(label if i == 0 else "", Text(line))

    def labelled(self, label: str, body: Text) -> Text:
        """One line, as it is, beside its label."""
        words = padded(told(label, self.language), _LABEL)
        return Text.assemble(" " * _INDENT, (words, "dim"), body)

    def list(self, title: Message, entries: Sequence[str]) -> Iterator[Text]:
        """A title and an entry a line, after an empty line; nothing if there is no entry."""
        if entries:
            yield Text()
            yield from self.title(title)
        for entry in entries:
            yield from self.entry(entry)

    def entry(self, text: str) -> Iterator[Text]:
        """One entry of a list."""
        lines = wrapped(told(text, self.language), self.width - _INDENT - 2)
        for i, line in enumerate(lines):
            yield Text.assemble(" " * _INDENT, "- " if i == 0 else "  ", line)

    # -- findings --------------------------------------------------------------------------------

    def finding(self, run: Run, finding: Finding) -> Iterator[Text]:
        """One finding in full."""
        evidence = finding.evidence
        severity = told(story.severity_word(finding.severity), self.language)
        yield Text.assemble(
            (severity, STYLES[finding.severity.value]),
            " ",
            (plain(f"{finding.code} {finding.name}"), "bold"),
        )
        yield from self.field(say("where"), where(run, evidence.site))
        yield from self.field(say("what"), evidence.message)
        yield from self.field(say("numbers"), in_turn(story.measures(finding)))
        yield from self.field(say("why"), evidence.cause)
        yield from self._fix(evidence.fix)
        yield from self.field(say("excluded"), in_turn(evidence.excluded))
        yield from self.field(say("seen"), story.seen(finding))

    def _fix(self, fix: str) -> Iterator[Text]:
        """Code is not wrapped: it is there to be pasted."""
        if fix and not story.is_code(fix):
            for line in self.field(say("fix"), fix):
                line.stylize("green", _INDENT + _LABEL)
                yield line
            return
        lines = plain_lines(translate(fix, self.language)) if fix else ()
        for i, line in enumerate(lines):
            yield self.labelled("" if i else say("fix"), Text(line, style="green"))


class _Report(Layout):
    """The report of one run."""

    def __init__(self, run: Run, width: int, language: str) -> None:
        super().__init__(width, language)
        self._run = run

    def lines(self) -> Iterator[Text]:
        run = self._run
        verdict = story.judged(run)
        yield from self.title(story.headline(run), STYLES.get(story.level(run), "bold"))
        roots = story.roots(verdict)
        for root in roots[:TOP]:
            yield Text()
            yield from self._root(root)
        yield from self._rest(roots[TOP:])
        cleared = [story.brief(run, finding) for finding in story.cleared(verdict)]
        yield from self.list(say("cleared"), cleared)
        yield from self.list(say("silenced"), story.silenced(run))
        yield from self.list(say("contexts"), story.contexts(run))
        unevaluated = [
            say("{what}: {reason}", what=codes, reason=reason)
            for reason, codes in story.unevaluated(run)
        ]
        yield from self.list(say("probed"), story.probes(run))
        yield from self.list(say("not probed"), story.unprobed(run))
        yield from self.list(say("not evaluated"), unevaluated)
        yield from self.list(say("not measured"), story.unmeasured(run))
        yield from self.list(say("notes"), story.notes(run))
        about = (story.cost(run), plain(str(run.path)) if run.path else "")
        yield from self.list(say("run"), [line for line in about if line])

    def _root(self, root: Root) -> Iterator[Text]:
        yield from self.finding(self._run, root.finding)
        for symptom in root.symptoms:
            yield from self.field(say("explains"), story.brief(self._run, symptom))

    def _rest(self, roots: Sequence[Root]) -> Iterator[Text]:
        briefs = [story.root_in_brief(self._run, root) for root in roots]
        yield from self.list(say("and {n} more", n=len(roots)), briefs)
