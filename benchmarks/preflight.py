"""In how many programs of the zoo preflight finds the model, the batch and a callable loss.

    python benchmarks/preflight.py            # every program, without the probes that train
    python benchmarks/preflight.py --all      # with them
    python benchmarks/preflight.py --json FILE

Prints a line a program (what was found, how long it took, what the rules say) and the share at the
end; exits with 1 if the share is below `--least`, which is 0.9 by default.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ZOO = Path(__file__).resolve().parent.parent / "zoo"


def programs() -> list[Path]:
    """Every program of the zoo."""
    return sorted([*(ZOO / "healthy").glob("*.py"), *(ZOO / "faults").rglob("*.py")])


def probed(program: Path, *options: str) -> dict[str, Any]:
    """The document of one preflight; without `preflight` in it if nothing was found."""
    command = [sys.executable, "-m", "traindx", "preflight", "--json", "-", *options, str(program)]
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    document = json.loads(done.stdout) if done.returncode in (0, 1) and done.stdout else {}
    return {**document, "wall": time.perf_counter() - began, "stderr": done.stderr}


def is_found(document: dict[str, Any]) -> bool:
    """Whether model, batch and callable loss were found and can be run again."""
    case = document.get("preflight", {}).get("case")
    return bool(case and case["batch_size"] and case["loss"] and not case["failure"])


def line(program: Path, document: dict[str, Any]) -> str:
    """What there is to say of one program."""
    name = f"{program.parent.name}/{program.stem}"
    if "preflight" not in document:
        return f"{name:<45} NOT FOUND: {document['stderr'].strip()[-200:]}"
    flight = document["preflight"]
    case = flight["case"]
    failed = [p["name"] for p in flight["probes"] if "failed" in (p["reason"] or "") or p["trace"]]
    findings = [f"{f['code']}:{f['severity']}" for f in document["findings"]]
    return (
        f"{name:<45} {case['model']:<14} batch {case['batch_size']} "
        f"loss {case['loss'] or case['why_no_loss']} {case['optimizer']} "
        f"{flight['seconds']:.1f} s (estimate {flight['estimate']:.1f}) {' '.join(findings)}"
        f"{' FAILED ' + ', '.join(failed) if failed else ''}"
        f"{' ' + case['failure'] if case['failure'] else ''}"
    )


def main() -> int:
    """Look at every program."""
    parser = argparse.ArgumentParser(description="How many programs preflight can probe.")
    parser.add_argument("--all", action="store_true", help="with the probes that train")
    parser.add_argument("--least", type=float, default=0.9)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    documents: dict[str, dict[str, Any]] = {}
    for program in programs():
        document = probed(program, *(() if args.all else ("--quick",)))
        documents[f"{program.parent.name}/{program.stem}"] = document
        print(line(program, document), flush=True)
    found = sum(map(is_found, documents.values()))
    print(f"model, batch and callable loss found in {found} of {len(documents)}")
    if args.json is not None:
        args.json.write_text(json.dumps(documents, indent=1), encoding="utf-8")
    return int(found < args.least * len(documents))


if __name__ == "__main__":
    sys.exit(main())
