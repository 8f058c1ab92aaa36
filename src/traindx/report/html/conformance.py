"""The conformance matrix as one self-contained page without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from traindx.findings import Severity
from traindx.languages import translate
from traindx.messages import say
from traindx.norm.conformance.matrix import Matrix, Shown, TargetResult
from traindx.report import story
from traindx.report.conformance import cell, headline, kinds, numbers
from traindx.report.untrusted import plain, plain_lines

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(matrix: Matrix, language: str = "en") -> str:
    """The whole page."""
    return _Page(language).page(matrix)


def _style() -> str:
    """The style of the report's page."""
    return Path(__file__).with_name("page.css").read_text("utf-8")


class _Page:
    """Sentences in one language, escaped."""

    def __init__(self, language: str) -> None:
        self._language = language

    def page(self, matrix: Matrix) -> str:
        title = self.words(say("Normalization layers: how they differ"))
        body = "\n".join(
            (
                *self._table(matrix),
                *(line for target in matrix.targets for line in self._target(target)),
                *self._missing(matrix),
            )
        )
        return (
            f'<!doctype html>\n<html lang="{escape(self._language)}">\n<head>\n'
            f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" '
            f'content="{escape(_POLICY)}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="color-scheme" content="light dark">\n'
            f"<title>{title}</title>\n<style>\n{_style()}</style>\n</head>\n"
            f"<body>\n<main>\n<h1>{title}</h1>\n{body}\n</main>\n</body>\n</html>\n"
        )

    def words(self, text: str) -> str:
        """A sentence in the reader's language, escaped."""
        return escape(translate(plain(text), self._language))

    def _table(self, matrix: Matrix) -> Iterator[str]:
        heads = "".join(f'<th scope="col">{escape(plain(t.name))}</th>' for t in matrix.targets)
        yield f'<section class="scroll"><table><thead><tr><th></th>{heads}</tr></thead><tbody>'
        for kind in kinds(matrix):
            cells = "".join(f"<td>{escape(cell(t, kind))}</td>" for t in matrix.targets)
            yield f'<tr><th scope="row">{escape(kind)}</th>{cells}</tr>'
        yield "</tbody></table></section>"
        said = self.words(say("E errors, W warnings, N notes; - has no such layer"))
        yield f'<p class="quiet small">{said}</p>'

    def _target(self, target: TargetResult) -> Iterator[str]:
        yield f"<section><h2>{self.words(headline(target))}</h2>"
        for one in target.differences:
            yield from self._difference(one)
        yield "</section>"

    def _difference(self, one: Shown) -> Iterator[str]:
        severity = self.words(story.severity_word(Severity(one.severity)))
        name = escape(plain(f"{one.layer} {one.name}"))
        yield f'<article class="finding {escape(one.severity)}"><h3>'
        yield f'<span class="badge {escape(one.severity)}">{severity}</span> {name}</h3>'
        yield f'<p class="where">{escape(plain(f"{one.part}, {one.verdict}"))}</p>'
        yield f'<p class="message">{self.words(one.text)}</p>'
        for label, values in ((say("got"), one.got), (say("expected"), one.expected)):
            if values:
                yield (
                    f'<p class="small"><span class="quiet">{self.words(label)}</span> '
                    f"<code>{escape(numbers(values))}</code></p>"
                )
        if one.program:
            code = escape("\n".join(plain_lines(one.program)))
            said = self.words(say("a program that shows both"))
            yield f"<details><summary>{said}</summary><pre>{code}</pre></details>"
        yield "</article>"

    def _missing(self, matrix: Matrix) -> Iterator[str]:
        if matrix.missing:
            yield f"<section><h2>{self.words(say('not installed'))}</h2><ul>"
            for name, why in matrix.missing.items():
                yield f"<li>{escape(plain(name))}: {self.words(why)}</li>"
            yield "</ul></section>"
