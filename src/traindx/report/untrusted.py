"""Text from the user's program, made safe to show.

Layer names, command lines and messages that quote them may hold anything. Every reporter passes
them through here; markup of its own medium (HTML, rich, plotly) it avoids or escapes itself.
"""

from __future__ import annotations

import re
import unicodedata

from traindx.languages import translate

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_SPACE = re.compile(r"[\t\r\n\v\f\x85\u2028\u2029]+")
# Control, format (bidirectional overrides, zero-width), surrogate: nothing a reader would miss.
_UNSEEN = frozenset({"Cc", "Cf", "Cs"})


def plain(text: str) -> str:
    """One line of printable characters: no control, no bidirectional override, no escape code."""
    if text.isascii() and text.isprintable():
        return text
    line = _SPACE.sub(" ", _ANSI.sub("", text))
    seen = "".join(c for c in line if unicodedata.category(c) not in _UNSEEN)
    return text if seen == text else seen  # a message that needed no change stays one


def told(text: str, language: str) -> str:
    """A sentence in the reader's language, as one line of printable characters."""
    return translate(plain(text), language)


def plain_lines(text: str) -> list[str]:
    """The lines of a text such as a snippet of code, each plain, indentation kept."""
    return [plain(line.expandtabs(4)) for line in text.strip("\n").split("\n")]
