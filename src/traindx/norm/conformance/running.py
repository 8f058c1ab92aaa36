"""Examines targets by name: here, or each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from traindx.errors import TraindxError, UsageError
from traindx.messages import listed, say
from traindx.norm.conformance import custom
from traindx.norm.conformance.defaults import study_defaults
from traindx.norm.conformance.examine import examine
from traindx.norm.conformance.kinds import KINDS
from traindx.norm.conformance.matrix import Matrix, TargetResult, merged, parsed, result
from traindx.norm.conformance.study import Study
from traindx.norm.conformance.target import Entry, NotInstalledError, Target, described
from traindx.norm.conformance.targets import entries
from traindx.norm.presets import find_preset


def names_of(asked: Sequence[str]) -> list[str]:
    """The targets that are asked for: `all` and `keras` stand for several.

    A file that `--json` wrote stands for the targets in it.

    Raises:
        UsageError: There is no such target.
    """
    known, found = list(entries()), list[str]()
    for name in asked:
        if name == "all":
            found += known
        elif name in known or ":" in name or name.endswith(".json"):
            found.append(name)
        elif several := [one for one in known if one.startswith(f"{name}-")]:
            found += several
        else:
            raise UsageError(
                say(
                    "A target is one of {known}, `all`, or `package:factory`; got `{name}`.",
                    known=listed(f"`{one}`" for one in known),
                    name=name,
                )
            )
    return list(dict.fromkeys(found))


def matrix(asked: Sequence[str], norm: str | None = None) -> Matrix:
    """The result of one target, examined here, or of several, each in its own process.

    Raises:
        UsageError: A target does not exist, or its process failed.
    """
    names = names_of(asked)
    if any(name.endswith(".json") for name in names):
        return merged(_read(name) if name.endswith(".json") else _apart(name) for name in names)
    if len(names) == 1 and (names[0] in asked or ":" in names[0]):
        return _here(names[0], norm)
    return merged(_apart(name) for name in names)


def _here(name: str, norm: str | None) -> Matrix:
    if ":" in name:
        return Matrix((_of_user(name, norm),), {})
    entry = entries()[name]
    try:
        target = _made(entry)
    except NotInstalledError as why:
        return Matrix((), {name: str(why)})
    return Matrix((result(target, examine(target)),), {})


def _made(entry: Entry) -> Target:
    """The target; what stands in its way is told.

    Raises:
        NotInstalledError: Its framework is not there, or fails to start.
    """
    for key, value in entry.environment.items():
        os.environ.setdefault(key, value)
    try:
        return entry.make()
    except ModuleNotFoundError as error:
        why = say("no `{module}`: {install}", module=error.name, install=entry.install)
        raise NotInstalledError(why) from error
    except NotInstalledError:
        raise
    except Exception as error:
        raise NotInstalledError(described(error)) from error


def _of_user(name: str, norm: str | None) -> TargetResult:
    if norm is not None:
        target = custom.load(name, _kind(norm))
    else:
        target = min((custom.load(name, kind) for kind in KINDS), key=_strangeness)
    return result(target, examine(target))


def _kind(norm: str) -> str:
    """The family of a preset, or of a family's own name.

    Raises:
        UsageError: There is no such family.
    """
    if norm in KINDS:
        return norm
    wanted = find_preset(norm).name.partition(".")[2].rstrip("123d")
    for kind in KINDS.values():
        if kind.baseline.partition(".")[2].rstrip("123d") == wanted:
            return kind.name
    raise UsageError(
        say(
            "Conformance knows the families {known}; got `{norm}`.",
            known=listed(f"`{kind}`" for kind in KINDS),
            norm=norm,
        )
    )


def _strangeness(target: custom.Custom) -> tuple[bool, int]:
    """How little a family explains a layer: whether not at all, then by how many differences."""
    study = Study.begun(target, next(iter(target.layers)))
    study_defaults(study)
    return study.unexplained or not study.verdicts, len(study.findings)


def _read(file: str) -> Matrix:
    """The matrix that was written into a file.

    Raises:
        UsageError: It cannot be read.
    """
    try:
        return parsed(Path(file).read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(say("Cannot read `{path}`: {reason}.", path=file, reason=error)) from error


def _apart(name: str) -> Matrix:
    """The result of a target, from a process of its own: one cannot hold two backends of Keras."""
    environment: Mapping[str, str] = entries()[name].environment if name in entries() else {}
    command = [sys.executable, "-m", "traindx", "norm", "conformance", name, "--json", "-"]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )
    try:
        return parsed(done.stdout)
    except TraindxError:
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return Matrix((), {name: said})
