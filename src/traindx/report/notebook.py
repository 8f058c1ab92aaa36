"""The verdict as a notebook shows it: one line, and a small table of findings."""

from __future__ import annotations

from html import escape

from traindx.languages import translate
from traindx.messages import counted, say
from traindx.report import story
from traindx.report.layers import where
from traindx.report.story import Root
from traindx.report.untrusted import plain, plain_lines, told
from traindx.run import Run

MOST = 5
"""Findings that get a row; the page has them all."""

_CELL = "text-align:left;vertical-align:top;padding:.2em .8em .2em 0"
_CODE = "margin:0;white-space:pre-wrap;background:none"


def render(run: Run, *, language: str = "en") -> str:
    """What is wrong, where, by which number, and what to change, as a fragment of HTML."""
    roots = story.roots(story.judged(run))
    parts = [f"<p><b>traindx</b> {_text(story.headline(run), language)}</p>"]
    if roots:
        titles = (say("what"), say("where"), say("number"), say("fix"))
        head = "".join(f'<th style="{_CELL}">{_text(title, language)}</th>' for title in titles)
        rows = "".join(_row(run, root, language) for root in roots[:MOST])
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")
    if not run.steps:
        parts += [f"<p>{_text(note, language)}</p>" for note in story.notes(run)]
    more = len(roots) - MOST
    if more > 0:
        text = counted(
            more, "{n} more finding is on the page.", "{n} more findings are on the page."
        )
        parts.append(f"<p>{_text(text, language)}</p>")
    return f'<div class="traindx">{"".join(parts)}</div>'


def _row(run: Run, root: Root, language: str) -> str:
    finding = root.finding
    evidence = finding.evidence
    severity = translate(story.severity_word(finding.severity), language)
    what = f"<b>{_text(severity, language)} {escape(plain(f'{finding.code} {finding.name}'))}</b>"
    if root.symptoms:
        more = say("explains {n} more", n=len(root.symptoms))
        what += f"<br>{_text(more, language)}"
    cells = (
        what,
        _text(where(run, evidence.site), language),
        _text(evidence.message, language),
        _fix(evidence.fix, language),
    )
    row = "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells)
    return f"<tr>{row}</tr>"


def _fix(fix: str, language: str) -> str:
    if not fix:
        return ""
    lines = plain_lines(translate(fix, language))
    return f'<pre style="{_CODE}">{escape(chr(10).join(lines))}</pre>'


def _text(text: str, language: str) -> str:
    return escape(told(text, language))
