"""Text from the user's program, made safe to show."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traindx.report.untrusted import plain, plain_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("features.3.bn1", "features.3.bn1"),
        ("[bold]x[/]\x1b[31m", "[bold]x[/]"),
        ("a\x1b\x1b[2J[2Jb", "a[2Jb"),
        ("user\u202egnp.exe", "usergnp.exe"),
        ("zero\u200bwidth", "zerowidth"),
        ("two\r\nlines\u2028here", "two lines here"),
        ("\x9b31mred", "31mred"),
        ("lone \ud800 surrogate", "lone  surrogate"),
        ("größe · 層", "größe · 層"),
    ],
)
def test_what_a_terminal_would_act_on_is_gone(text: str, shown: str) -> None:
    assert plain(text) == shown


@given(st.text(st.characters()))
def test_nothing_unseen_is_left_of_any_text(text: str) -> None:
    shown = plain(text)
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    assert plain(shown) == shown
    shown.encode()


def test_code_keeps_its_lines_and_its_indentation() -> None:
    assert plain_lines("if x:\n\ty = 1\x1b[0m\n") == ["if x:", "    y = 1"]
