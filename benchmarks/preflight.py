"""What preflight finds in the programs of the zoo, program by program and probe by probe.

    python benchmarks/preflight.py            # every program, without the probes that train
    python benchmarks/preflight.py --all      # with them
    python benchmarks/preflight.py --json FILE  # goes on where an earlier one has stopped
    python benchmarks/preflight.py --all --write  # puts the tables into docs/preflight.md

Prints a line a program (what was found, how long it took, what the rules say), then for each probe
in how many programs it applied and failed, and what its rules said of healthy and of faulty ones.
Exits with 1 if model, batch and loss are found in a share below `--least`, or if there is an error
in a healthy program.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ZOO = ROOT / "zoo"
PAGE = ROOT / "docs" / "preflight.md"
BEGIN, END = "<!-- Made by benchmarks/preflight.py. -->", "<!-- End. -->"

_PATIENCE = 600.0
"""Seconds that one program gets."""

Document = Mapping[str, Any]
Documents = dict[str, Document]


def programs(kind: str) -> list[Path]:
    """The programs of the zoo, healthy ones first."""
    healthy = sorted((ZOO / "healthy").glob("*.py")) if kind != "faults" else []
    faults = sorted((ZOO / "faults").rglob("*.py")) if kind != "healthy" else []
    return [*healthy, *faults]


def named(program: Path) -> str:
    """`healthy/mlp`."""
    return str(program.relative_to(ZOO).with_suffix(""))


def probed(program: Path, *options: str) -> dict[str, Any]:
    """The document of one preflight; without `preflight` in it if nothing was found.

    The command runs in a copy of this process, which has torch loaded: else most of the time would
    go into importing it.
    """
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        command = ["preflight", "--json", "-", "--runs", f"{folder}/runs", *options, str(program)]
        child = multiprocessing.get_context("fork").Process(target=_run, args=(folder, command))
        child.start()
        child.join(_PATIENCE)
        if child.is_alive():
            child.kill()
            child.join()
        told, errors = (
            Path(folder, name).read_text(encoding="utf-8", errors="replace")
            for name in ("stdout", "stderr")
        )
    document = json.loads(told) if child.exitcode in (0, 1) and told else {}
    return {**document, "wall": time.perf_counter() - began, "stderr": errors[-2000:]}


def _run(folder: str, command: list[str]) -> None:
    """In the copy: run the command, with what it prints in two files."""
    from traindx.cli.main import main as command_line

    os.chdir(folder)
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(name, os.O_CREAT | os.O_WRONLY), number)
    sys.argv = ["traindx", *command]
    command_line()


def is_found(document: Document) -> bool:
    """Whether model, batch and callable loss were found and can be run again."""
    case = document.get("preflight", {}).get("case")
    return bool(case and case["batch_size"] and case["loss"] and not case["failure"])


def has_error(document: Document) -> bool:
    """Whether some rule calls the program faulty."""
    return any(found["severity"] == "error" for found in document.get("findings", ()))


def unsound(document: Document) -> list[str]:
    """The probes that failed, and those that left a trace."""
    return [probe["name"] for probe in _probes(document) if probe["failed"] or probe["trace"]]


def line(name: str, document: Document) -> str:
    """What there is to say of one program."""
    if "preflight" not in document:
        return f"{name:<45} NOT FOUND: {document['stderr'].strip()[-200:]}"
    flight = document["preflight"]
    case = flight["case"]
    failed = unsound(document)
    findings = [f"{f['code']}:{f['severity']}" for f in document["findings"]]
    return (
        f"{name:<45} {case['model']:<14} batch {case['batch_size']} "
        f"loss {case['loss'] or case['why_no_loss']} {case['optimizer']} "
        f"{flight['seconds']:.1f} s (estimate {flight['estimate']:.1f}) {' '.join(findings)}"
        f"{' FAILED ' + ', '.join(failed) if failed else ''}"
        f"{' ' + case['failure'] if case['failure'] else ''}"
    )


# -- tables ----------------------------------------------------------------------------------------


def rules_of_probes() -> dict[str, list[str]]:
    """The rules that read what each probe writes."""
    from traindx.preflight.catalog import catalog as probes
    from traindx.rules.catalog import catalog as rules

    return {
        name: [
            code
            for code, rule in rules().items()
            if rule.source == "probe" and set(rule.reads) & set(probe.writes)
        ]
        for name, probe in probes().items()
    }


def summary(documents: Documents) -> Iterator[str]:
    """The share of programs found, the errors, and how good estimates were."""
    for kind in ("healthy", "faults"):
        some = {name: one for name, one in documents.items() if name.startswith(kind)}
        if not some:
            continue
        found = sum(map(is_found, some.values()))
        errors = sum(map(has_error, some.values()))
        yield (
            f"- {kind}: model, batch and loss found and run again in {found} of {len(some)} "
            f"programs; an error in {errors}."
        )
    known = [one for one in documents.values() if is_found(one)]
    ratios = [r for one in known if (r := _ratio(one["preflight"])) is not None]
    if ratios:
        good = sum(0.5 <= ratio <= 2 for ratio in ratios)
        inside = sum(_is_inside(one["preflight"]) for one in known)
        yield (
            f"- what all probes of a program took over what was estimated: median "
            f"{median(ratios):.2f}, within a factor of 2 in {good} of {len(ratios)}, in the range "
            f"that was told in {inside} of {len(known)}."
        )


def _ratio(flight: Mapping[str, Any]) -> float | None:
    return _taken(flight) / flight["estimate"] if flight["estimate"] else None


def _is_inside(flight: Mapping[str, Any]) -> bool:
    return bool(flight["least"] <= _taken(flight) <= flight["most"])


def _taken(flight: Mapping[str, Any]) -> float:
    """What all probes took, those that found that they do not apply as well."""
    return sum(probe["seconds"] or 0.0 for probe in flight["probes"])


def table(documents: Documents) -> Iterator[str]:
    """A line a probe."""
    yield "| probe | rules | applied | failed | told of faults | told of healthy (errors) | time |"
    yield "|---|---|---|---|---|---|---|"
    codes = rules_of_probes()
    for name, own in codes.items():
        looks = [p for one in documents.values() for p in _probes(one) if p["name"] == name]
        applied = [p for p in looks if not p["reason"]]
        failed = [p for p in looks if p["failed"] or p["trace"]]
        ratios = [p["seconds"] / p["estimate"] for p in applied if (p["estimate"] or 0) > 0.05]
        told = {
            kind: [_told(one, own) for key, one in documents.items() if key.startswith(kind)]
            for kind in ("healthy", "faults")
        }
        healthy = (
            f"{sum(map(bool, told['healthy']))} ({sum('error' in t for t in told['healthy'])})"
        )
        good = f"{sum(0.5 <= r <= 2 for r in ratios)} of {len(ratios)}" if ratios else "-"
        yield (
            f"| {name} | {' '.join(own) or '-'} | {len(applied)} of {len(looks)} | {len(failed)} | "
            f"{sum(map(bool, told['faults']))} | {healthy} | {good} |"
        )


def _probes(document: Document) -> list[dict[str, Any]]:
    return document.get("preflight", {}).get("probes", [])


def _told(document: Document, codes: list[str]) -> set[str]:
    """The severities of what some rules said of a program."""
    return {f["severity"] for f in document.get("findings", ()) if f["code"] in codes}


def tables(documents: Documents) -> str:
    """All of it as Markdown."""
    explained = (
        "*applied*: programs in which it looked, of those it was asked for. *told*: programs of "
        "which its rules said something, be it information. *time*: programs in which it took "
        "between half and twice its estimate, of those in which that was over 0.05 s."
    )
    return "\n".join([*summary(documents), "", *table(documents), "", explained])


def write(text: str) -> None:
    """Put the tables into the page."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def main() -> int:
    """Look at every program."""
    parser = argparse.ArgumentParser(description="What preflight finds in the zoo.")
    parser.add_argument("--all", action="store_true", help="with the probes that train")
    parser.add_argument("--kind", choices=("both", "healthy", "faults"), default="both")
    parser.add_argument("--least", type=float, default=0.9)
    parser.add_argument("--json", type=Path, help="what is known already, and is added to")
    parser.add_argument("--write", action="store_true", help="the tables into docs/preflight.md")
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for module in ("torch", "torch._dynamo", "traindx.preflight.checking", "traindx.cli.main"):
        import_module(module)
    documents: Documents = {}
    if args.json is not None and args.json.exists():
        documents = json.loads(args.json.read_text(encoding="utf-8"))
    for program in programs(args.kind):
        name = named(program)
        if name not in documents:
            documents[name] = probed(program, *(() if args.all else ("--quick",)))
            if args.json is not None:
                args.json.write_text(json.dumps(documents, indent=1), encoding="utf-8")
        print(line(name, documents[name]), flush=True)
    text = tables(documents)
    print(text)
    if args.write:
        write(text)
    found = sum(map(is_found, documents.values()))
    wrong = [n for n, one in documents.items() if n.startswith("healthy") and has_error(one)]
    return int(found < args.least * len(documents) or bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
