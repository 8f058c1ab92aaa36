"""What the sources say to people, found without running them: templates, and bare texts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import traindx
from traindx.report.html import words
from traindx.rules.catalog import catalog
from traindx.rules.page import SECTIONS

SOURCES = Path(traindx.__file__).parent
MAKERS = {"say": (0,), "counted": (1, 2)}
"""The functions that make a message, and which of their arguments are templates."""
SPOKEN = {"message", "cause", "fix", "excluded", "reason"}
"""Keywords that take sentences for people."""
ERRORS = {"UsageError", "BadRunFileError", "CannotStoreError", "ConfigError"}
"""Errors that the command line shows to a person."""
JUDGEMENTS = {"Evidence", "Context", "Silenced", "NotEvaluated"}
"""What rules and contexts say of a run."""
PRINTED = {"echo", "tell", "print"}
"""Functions that print what is not only a name or a number."""
NOT_SPOKEN = ("report/html/", "report/notebook.py", "rules/page.py")
"""Markup, and the pages of rules, which stay English."""
AS_PYTHON = ("demo/", "script.py")
"""Scripts as a user writes them, and what the interpreter itself would print of one."""
_WORDS = re.compile(r"[a-z]{2,} [a-z]{2,}")
NOTES = {"note", "warn", "_warn"}
"""Methods whose text a person reads."""


def sources() -> list[Path]:
    """Every file of the package but the translations themselves."""
    return [p for p in sorted(SOURCES.rglob("*.py")) if "languages" not in p.parts]


def calls(path: Path) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield node


def name_of(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def templates() -> dict[str, str]:
    """Every template with the place where it stands."""
    found: dict[str, str] = {}
    for path, call in _makers():
        for i in MAKERS[name_of(call)]:
            if (text := _literal(call.args[i])) is not None:
                found[text] = _place(path, call)
    return found | _joiners() | _pages()


def _pages() -> dict[str, str]:
    """What of the rules' pages is translated, and what the page of a run says by its scripts."""
    summaries = {rule.summary: f"the page of {rule.code}" for rule in catalog().values()}
    titles = dict.fromkeys(SECTIONS, "rules/page.py")
    return summaries | titles | dict.fromkeys(words.templates(), "report/html/*.js")


def _joiners() -> dict[str, str]:
    """What `listed` and `in_turn` make of their parts."""
    return dict.fromkeys(("{text}", "{a}, {b}", "{a}; {b}"), "messages.py")


def not_literal() -> list[str]:
    """Messages made of a template that no test can read."""
    return [
        _place(path, call)
        for path, call in _makers()
        if any(_literal(call.args[i]) is None for i in MAKERS[name_of(call)])
    ]


def untranslatable() -> list[str]:
    """Places where a person would read a text that is no message."""
    return [
        f"{path.relative_to(SOURCES)}:{text.lineno}: {ast.unparse(text)[:60]}"
        for path in sources()
        if not path.relative_to(SOURCES).as_posix().startswith(AS_PYTHON)
        for text in (*_given(path), *_returned(path))
    ]


def _given(path: Path) -> Iterator[ast.expr]:
    for call in calls(path):
        name = name_of(call)
        if name in ERRORS | NOTES:
            yield from filter(_is_bare, call.args[1:] if name == "note" else call.args[:1])
        if name in PRINTED:
            yield from filter(_has_words, call.args[:1])
        if name in JUDGEMENTS:
            keywords = (keyword.value for keyword in call.keywords if keyword.arg in SPOKEN)
            yield from filter(_is_bare, keywords)
            yield from filter(_has_words, call.args)


def _returned(path: Path) -> Iterator[ast.expr]:
    """Sentences that functions of the rules and of the terminal give back: reasons, words."""
    folder = path.relative_to(SOURCES).as_posix()
    if not folder.startswith(("rules/", "report/")) or folder.startswith(NOT_SPOKEN):
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Return) and node.value is not None:
            yield from filter(_has_words, [node.value])


def _makers() -> Iterator[tuple[Path, ast.Call]]:
    for path in sources():
        if path.name != "messages.py":
            # `say` of `outcome` prints what is given; a message is made by the bare name.
            yield from (
                (path, call)
                for call in calls(path)
                if isinstance(call.func, ast.Name) and call.func.id in MAKERS
            )


def _is_bare(text: ast.expr) -> bool:
    match text:
        case ast.JoinedStr():
            return True
        case ast.Constant(value=str(value)):
            return bool(value)
        case ast.Tuple(elts=parts):
            return any(map(_is_bare, parts))
        case ast.BinOp(left=left, right=right):
            return _is_bare(left) or _is_bare(right)
    return False


def _has_words(text: ast.expr) -> bool:
    """Whether it is a bare text with two words of English in a row."""
    if not _is_bare(text):
        return False
    return any(_WORDS.search(part) for part in _own_text(text))


def _own_text(text: ast.expr) -> Iterator[str]:
    match text:
        case ast.Constant(value=str(value)):
            yield value
        case ast.JoinedStr(values=parts) | ast.Tuple(elts=parts):
            for part in parts:
                yield from _own_text(part)
        case ast.BinOp(left=left, right=right):
            yield from _own_text(left)
            yield from _own_text(right)


def _literal(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _place(path: Path, call: ast.Call) -> str:
    return f"{path.relative_to(SOURCES)}:{call.lineno}"
