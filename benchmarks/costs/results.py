"""What was measured as plain data, and the tables made of it.

Tables are made of the data alone, so that one printed in a page can be made again from its file.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.costs.settings import NEVER
from benchmarks.costs.table import markdown, number, plain

Found = Mapping[str, Any]
Table = Callable[[Sequence[str], Sequence[Sequence[str]]], str]

TOLERANCE = 1.3
"""By how much of itself a budget may be exceeded."""
ERRORS = 2
"""Standard errors on either side of what is seen, within which the truth is taken to be."""
_COSTS = (
    "setting", "quiet CPU", "quartiles", "CPU", "wall", "unmeasured step", "measured step",
    "one in", "begin and end, ms", "steps", "MiB over bare", "kB a step", "target",
)  # fmt: skip
_BUDGETS = (
    "budget", "from step", "measuring", "listening", "together", "the run says", "measured",
    "of steps", "within a factor 1.3",
)  # fmt: skip


def add_files(parser: argparse.ArgumentParser, name: str) -> None:
    """Let the command line say where results of this name come from and go to.

    Files that cannot be read are refused there, before anything is measured.
    """
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured")
    parser.add_argument(
        "--markdown", type=partial(_page, name), nargs="?", const="docs/overhead.md",
        metavar="FILE", help="write the tables into this page, docs/overhead.md by default",
    )  # fmt: skip
    parser.add_argument(
        "--from", type=_found, dest="source", metavar="FILE", help="a file that --json wrote"
    )


def _page(name: str, word: str) -> Path:
    """A page that has the comments of this name."""
    _parts(Path(word), name)
    return Path(word)


def _found(word: str) -> Found:
    """What `--json` wrote."""
    try:
        found = json.loads(_text(Path(word)))
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"{word} is no JSON: {error}") from error
    if not isinstance(found, dict) or "conditions" not in found:
        raise argparse.ArgumentTypeError(f"{word} was not written by --json")
    return found


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(f"cannot read {file}: {error}") from error


def keep(found: Found, options: argparse.Namespace, text: str, name: str) -> None:
    """Write what was measured, and the text on it between the comments of this name in a page."""
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    if options.markdown:
        insert(text, options.markdown, name)


def tables(found: Found, *, as_markdown: bool = False) -> str:
    """All tables, with the command and the machine above them."""
    table = markdown if as_markdown else plain
    parts = [conditions(found, as_markdown=as_markdown)]
    mark = "### " if as_markdown else ""
    parts += [of_program(program, table, mark) for program in found["programs"].values()]
    if as_markdown and (peers := found.get("peers")):
        rows = [[one["title"], one["version"], one["collects"]] for one in peers.values()]
        parts.append(
            "### What the others collect\n\n" + markdown(("tool", "version", "what"), rows)
        )
    return "\n\n".join(parts)


def conditions(found: Found, *, as_markdown: bool = False) -> str:
    """The command and what the machine was like."""
    where = found["conditions"]
    command = f"`{where['command']}`" if as_markdown else where["command"]
    return (
        f"{command}, {where['when']}, {where['minutes']:.0f} min: traindx {where['traindx']}, "
        f"torch {where['torch']}, Python {where['python']}, {where['threads']} thread(s), "
        f"{where['cpus']} CPUs ({where['cpu']}), load {where['load'][0]} before and "
        f"{where['load'][1]} after."
    )


def of_program(program: Found, table: Table, mark: str = "") -> str:
    """The tables of one program."""
    settings = program["settings"]
    again = settings.get("again", {})
    noise = again.get("quiet")
    said = f"; noise {noise[1]:.3f}-{noise[2]:.3f}" if noise else ""
    bare = f"Bare: {1000 * program['bare']:.2f} ms of CPU time a step{said}."
    rows = [_row(one, again.get("peak", 0)) for one in settings.values()]
    parts = [f"{mark}{program['title']}", bare, table(_COSTS, rows)]
    if budgets := program.get("budgets"):
        parts.append(table(_BUDGETS, [_budget(one) for one in budgets]))
    return "\n\n".join(parts)


def _row(one: Found, bare_peak: int) -> list[str]:
    if "failed" in one:
        return [one["title"], one["failed"], *[""] * (len(_COSTS) - 2)]
    return [
        one["title"],
        number(one["quiet"][0]),
        f"{number(one['quiet'][1])}-{number(one['quiet'][2])}",
        number(one["cpu"][0]),
        number(one["wall"][0]),
        number(one["unmeasured"]),
        number(one["measured"]),
        "-" if one["every"] >= NEVER else str(one["every"]),
        number(1000 * one["around"], ".0f"),
        str(one["steps"]),
        _memory(one["peak"], bare_peak),
        f"{one['written'] / 1000:.1f}",
        verdict(one["quiet"], one.get("target")),
    ]


def _memory(peak: int, bare: int) -> str:
    """What a process held over what a bare one does, in MiB and as a part of that."""
    over = f"{(peak - bare) / 2**20:+.0f}"
    return f"{over} ({(peak - bare) / bare:+.0%})" if bare else over


def verdict(ratio: Sequence[float], aim: float | None) -> str:
    """Whether an aim was kept, which processes that disagree (or a single one) cannot tell."""
    if aim is None:
        return ""
    _, low, high = ratio
    decided = low < high and not low <= aim <= high
    word = "undecided" if not decided else "kept" if high <= aim else "missed"
    return f"{aim:.3f} {word}"


def _budget(one: Found) -> list[str]:
    if "failed" in one:
        return [f"{one['budget']:.0%}", one["failed"], *[""] * (len(_BUDGETS) - 2)]
    together = one["measuring"] + one["listening"]
    since, reported, error = one.get("since"), one["reported"], one.get("error", 0.0)
    return [
        f"{one['budget']:.0%}",
        "-" if since is None else str(since),
        f"{one['measuring']:.2%}",
        f"{one['listening']:.2%} ±{error:.2%}",
        f"{together:.2%}",
        "-" if reported is None else f"{reported:.2%}",
        str(one["measured"]),
        str(one["steps"]),
        _kept(together, TOLERANCE * one["budget"], error, in_force=since is not None),
    ]


def _kept(together: float, bound: float, error: float, *, in_force: bool) -> str:
    """Whether a bound was kept, which no one can tell if it is within two standard errors."""
    if not in_force:
        return "yes" if together <= bound else "not in force"
    if not together + ERRORS * error <= bound and not together - ERRORS * error > bound:
        return "undecided"
    return "yes" if together <= bound else "no"


def insert(text: str, file: Path, name: str) -> None:
    """Put a text between the two comments of this name in a page."""
    before, after = _parts(file, name)
    file.write_text(f"{before}\n\n{text}\n\n{after}", encoding="utf-8")


def _parts(file: Path, name: str) -> tuple[str, str]:
    """A page as far as the first comment of this name, and from the last one on."""
    begin, end = f"<!-- {name}: what follows is written by it -->", f"<!-- {name}: end -->"
    before, begun, rest = _text(file).partition(begin)
    _, ended, after = rest.rpartition(end)
    if not ended:
        raise argparse.ArgumentTypeError(f"{file} must have the lines `{begin}` and `{end}`")
    return before + begun, ended + after
