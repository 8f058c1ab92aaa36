"""`traindx norm conformance`: how the normalization layers of frameworks, or one's own, differ."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traindx.cli import outcome
from traindx.cli.language import Lang, spoken
from traindx.errors import UsageError
from traindx.findings import Severity
from traindx.messages import listed, say

if TYPE_CHECKING:
    from traindx.norm.conformance.matrix import Matrix


def conformance(
    target: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TARGET...",
            help="`torch`, `keras`, …, `all`, `package:factory`, or what `--json` wrote.",
        ),
    ] = None,
    norm: Annotated[
        str | None,
        typer.Option(
            "--norm", "-n", help="The layer that `package:factory` should be; found out without."
        ),
    ] = None,
    json: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write it as JSON; `-` prints it.")
    ] = None,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write it as a page.")] = None,
    markdown: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write it as Markdown.")
    ] = None,
    programs: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write a program for each difference into it."),
    ] = None,
    fail_on: Annotated[
        Severity, typer.Option(help="Exit with 1 if a difference is this severe or more.")
    ] = Severity.ERROR,
    lang: Lang = None,
) -> None:
    """Find how normalization layers differ from what they should be, and name each difference."""
    from traindx.norm.conformance.matrix import document
    from traindx.norm.conformance.running import matrix, names_of
    from traindx.report.conformance import render
    from traindx.report.text import wants_color

    asked = _asked(target, norm)
    for file in (json, html, markdown):
        outcome.must_have_folder(file)
    if programs is not None:
        _make(programs)
    with outcome.aside():
        found = matrix(asked, norm)
    if json is not None:
        outcome.write(document(found), json)
    if html is not None:
        from traindx.report.html.conformance import page

        outcome.write(page(found, spoken()), html)
    if markdown is not None:
        from traindx.report.conformance_markdown import page as tables

        outcome.write(tables(found), markdown)
    if programs is not None:
        _write_programs(found, programs)
    if "-" not in {json, html, markdown}:
        color = wants_color(sys.stdout, os.environ)
        outcome.echo(render(found, width=outcome.width(), color=color, language=spoken()))
    _refuse_missing(found, [name for name in asked if name in names_of(asked)])
    if found.worst is not None and found.worst.rank <= fail_on.rank:
        raise typer.Exit(1)


def _asked(target: list[str] | None, norm: str | None) -> list[str]:
    if not target:
        raise UsageError(
            say(
                "`traindx norm conformance` needs a target: `traindx norm conformance torch`, "
                "`traindx norm conformance package:factory`."
            )
        )
    if norm is not None and not any(":" in name for name in target):
        raise UsageError(say("`--norm` says what `package:factory` should be; name one."))
    return target


def _refuse_missing(found: Matrix, asked: list[str]) -> None:
    """What was asked for by name and is not there is an error; what `all` stands for is not."""
    missing = [name for name in asked if name in found.missing]
    if missing:
        raise UsageError(
            say("Not installed: {names}.", names=listed(f"`{name}`" for name in missing))
        )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            say("Cannot write `{file}`: {reason}.", file=folder, reason=error.strerror)
        ) from error


def _write_programs(found: Matrix, folder: Path) -> None:
    for target in found.targets:
        for i, one in enumerate(target.differences):
            if one.program:
                name = f"{target.name}-{i:02d}-{one.layer}-{one.name}"
                file = folder / f"{re.sub('[^A-Za-z0-9-]+', '_', name)}.py"
                outcome.write(one.program, str(file))
