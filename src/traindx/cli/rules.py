"""`traindx rules` and `traindx rule CODE`: the catalogue, and one page of it."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from traindx.cli import outcome
from traindx.cli.language import Lang, spoken
from traindx.languages import translate
from traindx.rules.catalog import catalog, find
from traindx.rules.page import entry, markdown


def rules(
    as_json: Annotated[bool, typer.Option("--json", help="Print the catalogue as JSON.")] = False,
    lang: Lang = None,
) -> None:
    """List every rule."""
    listed = list(catalog().values())
    if as_json:
        typer.echo(json.dumps([entry(rule) for rule in listed], indent=2))
        return
    from traindx.report.story import severity_word
    from traindx.report.wrapping import padded

    width = max(len(rule.name) for rule in listed)
    for rule in listed:
        severity = padded(translate(severity_word(rule.severity), spoken()), 7)
        text = translate(rule.summary, spoken())
        outcome.echo(f"{rule.code}  {rule.name:<{width}}  {severity}  {text}")


def rule(
    code: Annotated[str, typer.Argument(help="A code, `N001`, or a name, `bn-eval-gap`.")],
    lang: Lang = None,
) -> None:
    """Explain a rule: what it sees, why it matters, how to fix it."""
    page = markdown(find(code), spoken())
    if sys.stdout is not None and sys.stdout.isatty():
        # rich's Markdown takes as long to import as all the rest: only where it is seen.
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(page))
    else:
        outcome.echo(page.rstrip("\n"))
