"""The changelog's script, as CI and a release call it."""

import runpy
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SCRIPT: dict[str, Any] = runpy.run_path(
    str(Path(__file__).resolve().parent.parent / "scripts" / "changelog.py")
)
malformed: Callable[[Path], list[str]] = SCRIPT["malformed"]
missing: Callable[[Path, str], list[str]] = SCRIPT["missing"]
collect: Callable[[Path, str, str], None] = SCRIPT["collect"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "changelog.d").mkdir()
    (tmp_path / "changelog.d" / "README.md").write_text("How to.\n")
    (tmp_path / "src" / "module.py").write_text("x = 1\n")
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n<!-- releases, newest first -->\n\n## 0.1.0 (2026-01-01)\n"
    )
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(project: Path, *arguments: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", "-C", str(project), *who, *arguments], check=True, capture_output=True)


def commit(project: Path) -> None:
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "change")


def add(project: Path, name: str, text: str) -> None:
    (project / "changelog.d" / name).write_text(text)


def test_a_well_formed_fragment_is_accepted(project: Path) -> None:
    add(project, "new-rule.added.md", "A rule.\n")
    assert malformed(project) == []


@pytest.mark.parametrize("name", ["new-rule.md", "new-rule.better.md", "New Rule.added.md"])
def test_a_misnamed_fragment_is_told_how_to_be_named(project: Path, name: str) -> None:
    add(project, name, "A rule.\n")
    assert malformed(project) == [
        "A fragment is named `WORDS-OF-THE-CHANGE.KIND.md` with KIND one of added, changed, "
        f"deprecated, removed, fixed; got `changelog.d/{name}`."
    ]


def test_an_empty_fragment_is_refused(project: Path) -> None:
    add(project, "new-rule.added.md", "\n")
    assert malformed(project) == [
        "A fragment says what changed; `changelog.d/new-rule.added.md` is empty."
    ]


def test_changed_sources_need_a_new_fragment(project: Path) -> None:
    (project / "src" / "module.py").write_text("x = 2\n")
    commit(project)
    assert missing(project, "HEAD~1") == [
        "src/ differs from HEAD~1: add a fragment to changelog.d/ that says what changed."
    ]
    add(project, "two.changed.md", "x is 2.\n")
    commit(project)
    assert missing(project, "HEAD~2") == []


def test_a_change_outside_the_sources_needs_no_fragment(project: Path) -> None:
    (project / "README.md").write_text("Words.\n")
    commit(project)
    assert missing(project, "HEAD~1") == []


def test_a_release_collects_the_fragments_above_the_last_one(project: Path) -> None:
    add(project, "b.fixed.md", "No crash\non Tuesdays.\n")
    add(project, "a.added.md", "A rule.\n")
    collect(project, "0.2.0", "2026-02-01")
    assert (project / "CHANGELOG.md").read_text() == (
        "# Changelog\n\n<!-- releases, newest first -->\n\n"
        "## 0.2.0 (2026-02-01)\n\n### Added\n\n- A rule.\n\n"
        "### Fixed\n\n- No crash\n  on Tuesdays.\n\n## 0.1.0 (2026-01-01)\n"
    )
    assert [path.name for path in (project / "changelog.d").iterdir()] == ["README.md"]
