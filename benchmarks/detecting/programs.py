"""The programs of the zoo as the benchmark sees them: what each is about, and its half."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ZOO = ROOT / "zoo"
HALVES = ("calibration", "test")
APART = frozenset({"normalization", "mode"})
"""Kinds of fault that are counted apart, since they are what traindx is made for."""
LOOKED_AT = frozenset(
    {
        "average_without_buffers",
        "best_weights_by_reference",
        "branches_without_norm",
        "constants_of_another_range",
        "critic_without_power_iteration",
        "deviation_loaded_as_variance",
        "domains_in_turn",
        "eps_of_ten",
        "norms_decayed_away",
        "padding_in_the_loss",
        "padding_in_the_statistics",
        "raw_target_regression",
        "replica_zero_saved",
        "seq2seq",
        "statistics_reset_each_epoch",
        "swa_without_update_bn",
        "train_that_does_not_recurse",
        "weight_and_bias_swapped_in_a_port",
    }
)
"""Programs of the test half after whose outcome a rule or the program was changed: a test no more,
they count as calibration. Who looks at a program of the test half adds it here."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program, and what the lines at its top say; all empty for a healthy one.

    Attributes:
        name: Folder and stem, as `faults/no_zero_grad`.
        path: Where it is.
        digest: SHA-256 of its text.
        expects: The code that should be the first finding.
        place: Where it should be found; empty if anywhere.
        kind: What sort of fault it is.
    """

    name: str
    path: Path
    digest: str
    expects: str = ""
    place: str = ""
    kind: str = ""

    @property
    def is_fault(self) -> bool:
        """Whether it has a fault, and so a healthy twin."""
        return bool(self.expects)

    @property
    def half(self) -> str:
        """The half it belongs to, fixed by its name, unless it is a test no more."""
        return "calibration" if self._stem in LOOKED_AT else self.drawn

    @property
    def drawn(self) -> str:
        """The half that its name alone gives it."""
        return HALVES[int(hashlib.sha256(self._stem.encode()).hexdigest(), 16) % 2]

    @property
    def _stem(self) -> str:
        return self.name.rpartition("/")[2]

    @property
    def group(self) -> str:
        """Which faults it is counted with."""
        return "normalization and mode" if self.kind in APART else "all others"


def programs(zoo: Path = ZOO) -> list[Program]:
    """Every program of the zoo, the faults first."""
    faults = [program_of(path, zoo) for path in sorted((zoo / "faults").rglob("*.py"))]
    return faults + [program_of(path, zoo) for path in sorted((zoo / "healthy").glob("*.py"))]


def program_of(path: Path, zoo: Path) -> Program:
    """A program by its file.

    Raises:
        ValueError: It is a fault, and its docstring does not say what is expected.
    """
    text = path.read_text(encoding="utf-8")
    name = path.relative_to(zoo).with_suffix("").as_posix()
    digest = hashlib.sha256(text.encode()).hexdigest()
    if not name.startswith("faults/"):
        return Program(name, path, digest)
    lines = ast.get_docstring(ast.parse(text)) or ""
    said = {key: _said(lines, key) for key in ("expects", "place", "kind")}
    if not said["expects"]:
        raise ValueError(f"{path}: the docstring needs the lines that zoo/README.md shows")
    return Program(name, path, digest, **said)


def _said(docstring: str, key: str) -> str:
    found = re.search(rf"^{key}:[ ]*(\S*)[ ]*$", docstring, re.MULTILINE)
    return found[1] if found else ""


def split_hash(some: Iterable[Program]) -> str:
    """What the split into halves is known by: it changes if a program does, or comes or goes."""
    lines = sorted(f"{program.name} {program.half} {program.digest}\n" for program in some)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def source_hash() -> str:
    """What the judged version of traindx is known by: a hash of its Python files."""
    source = ROOT / "src" / "traindx"
    whole = hashlib.sha256()
    for path in sorted(source.rglob("*.py")):
        whole.update(path.relative_to(source).as_posix().encode() + path.read_bytes())
    return whole.hexdigest()
