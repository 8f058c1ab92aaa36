"""The changelog's fragments: one file a change in `changelog.d/`, collected at a release.

Usage:
    python scripts/changelog.py check [BASE]    each fragment is well formed; and if src/ differs
                                                from the commit BASE, there is a new fragment
    python scripts/changelog.py collect VERSION DATE
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("added", "changed", "deprecated", "removed", "fixed")
NAME = re.compile(rf"[a-z0-9-]+\.({'|'.join(KINDS)})\.md")
UNRELEASED = "<!-- releases, newest first -->\n"


def fragments(root: Path) -> list[Path]:
    """Every file of `changelog.d/` but its README, by name."""
    return sorted(path for path in (root / "changelog.d").iterdir() if path.name != "README.md")


def malformed(root: Path) -> list[str]:
    """A sentence for each fragment that is misnamed or empty."""
    wanted = f"`WORDS-OF-THE-CHANGE.KIND.md` with KIND one of {', '.join(KINDS)}"
    named = [path for path in fragments(root) if not NAME.fullmatch(path.name)]
    empty = [path for path in fragments(root) if not path.read_text(encoding="utf-8").strip()]
    return [
        *(f"A fragment is named {wanted}; got `changelog.d/{path.name}`." for path in named),
        *(f"A fragment says what changed; `changelog.d/{path.name}` is empty." for path in empty),
    ]


def missing(root: Path, base: str) -> list[str]:
    """A sentence if src/ changed since `base` and no fragment was added."""

    def changed(where: str, *options: str) -> bool:
        command = ["git", "-C", str(root), "diff", "--name-only", *options, base, "--", where]
        return bool(subprocess.run(command, check=True, capture_output=True).stdout.strip())

    if not changed("src") or changed("changelog.d", "--diff-filter=A"):
        return []
    return [f"src/ differs from {base}: add a fragment to changelog.d/ that says what changed."]


def collect(root: Path, version: str, date: str) -> None:
    """Move the fragments into CHANGELOG.md, as the newest release."""
    section = [f"## {version} ({date})"]
    for kind in KINDS:
        items = [path for path in fragments(root) if path.name.endswith(f".{kind}.md")]
        texts = [path.read_text(encoding="utf-8").strip() for path in items]
        if texts:
            bullets = ["- " + text.replace("\n", "\n  ") for text in texts]
            section += ["", f"### {kind.capitalize()}", "", *bullets]
    changelog = root / "CHANGELOG.md"
    before, marker, after = changelog.read_text(encoding="utf-8").partition(UNRELEASED)
    assert marker, f"CHANGELOG.md has lost its line {UNRELEASED.strip()}"
    text = f"{before}{marker}\n" + "\n".join(section) + f"\n{after}"
    changelog.write_text(text, encoding="utf-8")
    for path in fragments(root):
        path.unlink()


def main(arguments: list[str]) -> int:
    """Run the subcommand; 1 if the check fails, 2 if it is called wrongly."""
    match arguments:
        case ["check", *rest] if len(rest) < 2:
            base = rest[0] if rest else os.environ.get("CHANGELOG_BASE", "")
            problems = malformed(ROOT) + (missing(ROOT, base) if base else [])
            print(*problems, sep="\n", end="\n" if problems else "")
            return 1 if problems else 0
        case ["collect", version, date]:
            collect(ROOT, version, date)
            return 0
        case _:
            print(__doc__)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
