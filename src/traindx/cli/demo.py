"""`traindx demo`: three programs trained and diagnosed on data that ships with traindx."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traindx.cli import outcome
from traindx.cli.language import Lang, spoken
from traindx.config import Config
from traindx.errors import UsageError
from traindx.languages import translate
from traindx.messages import Message, say
from traindx.store.place import run_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress, TaskID


@dataclass(frozen=True, slots=True)
class Program:
    """One program of the demo, as a user's own script.

    Attributes:
        module: Its name in `traindx.demo`.
        title: What it is, in one line.
        compares: Whether to compare its accuracy under batch and running statistics.
    """

    module: str
    title: Message
    compares: bool = False

    @property
    def path(self) -> Path:
        """Its file."""
        import traindx.demo

        return Path(traindx.demo.__path__[0]) / f"{self.module}.py"


PROGRAMS = (
    Program("sigmoid_chain", say("A 20-layer sigmoid network")),
    Program("stale_batchnorm", say("A small conv net, BatchNorm momentum 0.001"), compares=True),
    Program("healthy_batchnorm", say("The same net, BatchNorm momentum 0.1"), compares=True),
)


def demo(
    folder: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where run files and pages go.")
    ] = Path("traindx-runs/demo"),
    lang: Lang = None,
) -> None:
    """Train and diagnose three small programs on Fashion-MNIST; about a minute."""
    outcome.must_have_torch()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror
        text = say("Cannot write to `{folder}`: {reason}.", folder=folder, reason=reason)
        raise UsageError(text) from error
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        pages = [_show(program, folder, progress) for program in PROGRAMS]
    language = spoken()
    typer.echo(f"\n{translate(say('Open these pages in a browser:'), language)}")
    for page in pages:
        typer.echo(f"  {page}")


def _show(program: Program, folder: Path, progress: Progress) -> Path:
    """Train one program, print its findings, and write its page."""
    from traindx.report.html.page import render

    task = progress.add_task(translate(program.title, spoken()), total=_expected_lines(program))
    weights = folder / f"{program.module}.pt"
    run_file = _train(program, folder, weights, progress, task)
    run = outcome.open_run(run_file, Config())
    page = run_file.with_suffix(".html")
    outcome.write(render(run, spoken()), str(page))
    title = translate(program.title, spoken())
    typer.echo(f"\n== {title} ({program.path.name})\n")
    outcome.show(run, sys.stdout)
    if program.compares:
        typer.echo(_accuracies(program, weights))
    weights.unlink()
    progress.update(task, completed=_expected_lines(program))
    return page


def _train(program: Program, folder: Path, weights: Path, progress: Progress, task: TaskID) -> Path:
    """Run a program as a user would, in a process of its own."""
    options = ["--quiet", "--config", os.devnull, "--runs", str(folder)]  # not as the user's own
    words = ["run", *options, str(program.path), "--save", str(weights)]
    before = set(run_files(folder))
    for line in _lines(words):
        progress.console.print(f"  {line}", markup=False, highlight=False)
        progress.advance(task)
    made = next((path for path in run_files(folder) if path not in before), None)
    if made is None:
        raise UsageError(
            say("Nothing could be saved in `{folder}`. Choose another folder.", folder=folder)
        )
    return made


def _lines(words: list[str]) -> Iterator[str]:
    """Output lines of a traindx command, as they come."""
    command = [sys.executable, "-u", "-m", "traindx", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield from (line.rstrip("\n") for line in process.stdout)
    if process.returncode:
        raise UsageError(
            say(
                "`{command}` ended with exit code {code}.",
                command=" ".join(words),
                code=process.returncode,
            )
        )


def _expected_lines(program: Program) -> int:
    """Epochs it prints a line of, for the progress bar."""
    return 4 if program.compares else 5


def _accuracies(program: Program, weights: Path) -> str:
    """Test accuracy with the statistics of the batch and with the running ones, in words."""
    from traindx.demo.evaluate import accuracies

    batch, running = accuracies(program.module, weights)
    text = say(
        "test accuracy  {batch:.3f} with batch statistics, {running:.3f} with running ones",
        batch=batch,
        running=running,
    )
    return f"\n{translate(text, spoken())}"
