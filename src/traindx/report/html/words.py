"""The page's own words in its scripts and template, and their twins in the page's language."""

from __future__ import annotations

import re
from importlib import resources

from traindx.facts import Json
from traindx.languages import messages

SCRIPTS = (
    "elements.js",
    "numbers.js",
    "plots.js",
    "findings.js",
    "layers.js",
    "charts.js",
    "pictures.js",
    "page.js",
)
"""The page's scripts in the order they run."""

_SAID = re.compile(r'\bt\(\s*"((?:[^"\\]|\\.)*)"')


def asset(name: str) -> str:
    """A file of the page."""
    return resources.files(__name__.rpartition(".")[0]).joinpath(name).read_text("utf-8")


def templates() -> list[str]:
    """Every template in the page's scripts: `t("after {steps} steps", {steps})`."""
    found = (said for script in SCRIPTS for said in _SAID.findall(asset(script)))
    return list(dict.fromkeys([*found, NO_SCRIPT]))


NO_SCRIPT = "This report draws itself with JavaScript, which is switched off here."


def strings(language: str) -> dict[str, Json]:
    """The twins of the templates; empty for English, and where a twin is missing."""
    if language == "en":
        return {}
    known = messages(language)
    return {template: known[template] for template in templates() if template in known}
