"""The command line that other programs may rely on: growth is a deliberate edit of this file."""

from typing import Any

import pytest
import typer.main

from traindx.cli.main import app

# Arguments by name, options by their flags.
JUDGING = {"--baseline", "--config", "--context", "--ignore", "--select"}
COMMANDS: dict[str, set[str]] = {
    "": {"--lang", "--version"},
    "check": {"run", "--fail-on", "--json", "--lang", "--write-baseline", *JUDGING},
    "demo": {"--folder", "--lang"},
    "diff": {"before", "after", "--config", "--fail-on", "--json", "--lang"},
    "norm audit": {
        *("what", "--checkpoint", "--fail-on", "--json", "--lang", "--shape", "--steps"),
    },
    "norm convert": {
        *("source", "--axis", "--batches", "--checkpoint", "--dry-run", "--elements", "--for"),
        *("--frameworks", "--from", "--json", "--lang", "--layer", "--leave-out", "--momentum"),
        *("--no-frameworks", "--out", "-o", "--rename", "--to"),
    },
    "norm explain": {
        *("a", "b", "--checkpoint", "--elements", "--format", "--lang", "--option-a", "-a"),
        *("--option-b", "-b"),
    },
    "norm conformance": {
        *("target", "--fail-on", "--html", "--json", "--lang", "--markdown", "--norm", "-n"),
        "--programs",
    },
    "norm fold": {
        *("target", "--checkpoint", "--json", "--lang", "--out", "-o", "--shape"),
    },
    "norm presets": {"name", "--lang"},
    "norm recalibrate": {
        *("target", "--batches", "--checkpoint", "--json", "--lang", "--out", "-o"),
    },
    "norm trace": {
        *("x", "--batches", "--bias", "--digits", "--format", "--grad", "--lang", "--mask"),
        *("--norm", "-n", "--option", "-o", "--running-mean", "--running-var", "--u", "--v"),
        "--weight",
    },
    "norm verify": set(),
    "preflight": {
        *("target", "-m", "--fail-on", "--html", "--json", "--lang", "-o", "--quick", "--shape"),
        "--width-argument",
        *("--command", "--no-command", "--runs", "--first-weights", "--no-first-weights"),
        *JUDGING,
    },
    "report": {"run", "-o", "--lang", "--output", *JUDGING},
    "rule": {"code", "--lang"},
    "rules": {"--json", "--lang"},
    "run": {
        "script",
        "-m",
        "--budget",
        "--command",
        "--compiled-activations",
        "--every",
        "--fail-on",
        "--first-weights",
        "--json",
        "--lang",
        "--no-command",
        "--no-first-weights",
        "--quiet",
        "--runs",
        "--trap-nan",
        *JUDGING,
    },
    "show": {"run", "site", "--config", "--lang"},
    "signal": {"target", "--eval", "--json", "--lang", "--seed", "--shape", "--variance"},
}


def parameters(command: Any) -> set[str]:
    flags = ((*p.opts, *p.secondary_opts) for p in command.params)
    return {flag for several in flags for flag in several} - {"--help"}


def commands(command: Any, path: tuple[str, ...] = ()) -> dict[str, set[str]]:
    """Every command with its parameters, groups opened, by its words."""
    if not hasattr(command, "commands"):
        return {" ".join(path): parameters(command)}
    found = {" ".join(path): parameters(command)} if path == () else {}
    for name, child in command.commands.items():
        if not child.hidden:
            found |= commands(child, (*path, name))
    return found


def test_the_commands_and_their_options_are_these() -> None:
    assert commands(typer.main.get_command(app)) == COMMANDS


@pytest.mark.parametrize("name", [name for name in COMMANDS if name])
def test_every_command_says_in_one_sentence_what_it_does(name: str) -> None:
    command: Any = typer.main.get_command(app)
    for word in name.split():
        command = command.commands[word]
    assert command.help
    assert command.help.strip().partition("\n\n")[0].endswith(".")
