"""The page: template, style, scripts and data in one file that asks nothing of any network."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import import_module
from string import Template

from traindx.facts import Json
from traindx.report.html.content import content
from traindx.report.html.words import NO_SCRIPT, SCRIPTS, asset, strings
from traindx.run import Run


def render(run: Run, language: str = "en") -> str:
    """The whole report as HTML.

    Args:
        run: What to show.
        language: A key of `traindx.languages.LANGUAGES`.
    """
    plotly, own = _plotly(), [asset(name) for name in SCRIPTS]
    theme = asset("theme.js")
    return Template(asset("page.html")).substitute(
        policy=_policy(scripts=(theme, *own, plotly)),
        language=language,
        style=asset("page.css"),
        theme=theme,
        noscript=strings(language).get(NO_SCRIPT, NO_SCRIPT),
        plotly=plotly,
        scripts="\n".join(f"<script>{script}</script>" for script in own),
        data=_embedded(content(run, language)),
    )


def _plotly() -> str:
    """plotly.js with its notice, as the installed plotly package brings it."""
    # By name, since plotly publishes no types.
    script: str = import_module("plotly.offline").get_plotlyjs()
    # The browser hashes what it parsed, and parsing turns every line end into \n.
    return script.replace("\r\n", "\n").replace("</script", "<\\/script")


def _policy(scripts: tuple[str, ...]) -> str:
    """A Content-Security-Policy under which only our scripts run and nothing is fetched.

    Plotly places its parts with style attributes and fills an empty style element, so inline
    styles are allowed; its heatmaps are images it draws itself, as data.
    """
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(_hash(script) for script in scripts)}",
            "style-src 'unsafe-inline'",
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _embedded(value: Json) -> str:
    """JSON that no HTML parser mistakes for markup: ASCII, and without a single `<`."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")
