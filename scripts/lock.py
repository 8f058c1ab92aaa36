"""Write `requirements-dev.lock`: one version of every package a developer's machine needs.

Usage: `python scripts/lock.py NEWER OLDER`, two interpreters on either side of `SPLIT`, where many
packages end their support. Each resolves with its own pip; a package whose version differs is
written once a side, with a marker. torch is resolved on the newer side alone, since its wheels for
other interpreters may be gigabytes; the older side gets the packages that torch asks for.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TypedDict

ROOT = Path(__file__).resolve().parent.parent
SPLIT = "3.11"
HEADER = """\
# Made by `make lock` from pyproject.toml: edit that, not this.
# Every package is pinned; there are no hashes, since each platform and Python takes another wheel.
# torch stands first and `make install` installs it first: where a CPU build of this version is at
# hand pip takes it, and no other package can pull in a different one.
"""


class Package(TypedDict):
    """What pip's report says of one package, as far as it is read here."""

    name: str
    version: str
    requires_dist: list[str]


def asked_for() -> list[str]:
    """What pyproject.toml asks for: the project's own requirements and the developer's tools."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]


def resolve(python: str, requirements: list[str]) -> dict[str, Package]:
    """The metadata of every package that pip would install, by normalized name."""
    command = [python, "-m", "pip", "install", "--dry-run", "--ignore-installed", "-qq"]
    command += ["--report", "-", *requirements]
    report = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found: list[Package] = [item["metadata"] for item in json.loads(report)["install"]]
    return {package["name"].lower().replace("_", "-"): package for package in found}


def is_torch(requirement: str) -> bool:
    """Whether a requirement or a normalized name is torch's."""
    return requirement.partition("==")[0] == "torch"


def public(package: Package) -> str:
    """A package's version without the local part, such as `+cpu`."""
    return package["version"].partition("+")[0]


def lines(newer: dict[str, str], older: dict[str, str]) -> list[str]:
    """One pin a package, two where the sides differ, torch first."""
    pins: list[str] = []
    for name in sorted({*newer, *older}, key=lambda name: (not is_torch(name), name)):
        if newer.get(name) == older.get(name):
            pins.append(f"{name}=={newer[name]}")
            continue
        sides = ((newer, ">="), (older, "<"))
        pins += [
            f'{name}=={side[name]} ; python_version {compare} "{SPLIT}"'
            for side, compare in sides
            if name in side
        ]
    return pins


def main(newer_python: str, older_python: str) -> None:
    """Resolve on both sides and write the lock."""
    wanted = asked_for()
    newer = resolve(newer_python, wanted)
    of_torch = [need for need in newer["torch"]["requires_dist"] if "extra ==" not in need]
    older = resolve(older_python, [need for need in wanted if not is_torch(need)] + of_torch)
    older["torch"] = newer["torch"]
    pins = [{name: public(side[name]) for name in side} for side in (newer, older)]
    text = "\n".join(lines(*pins))
    (ROOT / "requirements-dev.lock").write_text(f"{HEADER}{text}\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
