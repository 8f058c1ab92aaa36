"""Settings on the command line: `--select`, `--ignore`, `--baseline`, `--context`, `--config`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.twins import TRAINDX, run, run_files, write
from traindx.cli.main import main

SCRIPT = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for i in range(30):
        model(torch.randn(16, 8)).pow(2).mean().backward()
        optimizer.step()  # and no zero_grad
    print("trained")
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of a faulty script, made with settings of its own."""
    folder = tmp_path_factory.mktemp("settings")
    write(folder / "script.py", SCRIPT)
    write(folder / "pyproject.toml", "[tool.traindx]\nfail-on = 'error'\ncontexts = ['rl']\n")
    done = run((TRAINDX, "run", "--context", "gan", "script.py"), folder)
    assert (done.returncode, done.stdout) == (1, b"trained\n"), done.stderr.decode()
    (folder / "pyproject.toml").unlink()
    return folder


Check = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def check(
    trained: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Check:
    """Checks the run in another folder: exit code and document."""
    monkeypatch.chdir(tmp_path)
    (file,) = run_files(trained)

    def call(*words: str) -> tuple[int, dict[str, Any]]:
        monkeypatch.setattr("sys.argv", ["traindx", "check", str(file), "--json", "-", *words])
        with pytest.raises(SystemExit) as stop:
            main()
        out = capsys.readouterr().out
        return int(stop.value.code or 0), json.loads(out) if out else {}

    return call


def codes(document: dict[str, Any]) -> list[str]:
    return [finding["code"] for finding in document["findings"]]


def test_the_file_decides_whether_a_run_fails_and_the_run_remembers_its_contexts(check: Check):
    code, document = check()
    assert (code, codes(document)) == (1, ["G006"])
    assert document["contexts"] == ["gan"]  # the option replaced the key of the file
    assert document["context_details"][0]["reason"] == "declared for this run"


def test_a_check_may_declare_more(check: Check):
    assert check("--context", "rl,contrastive")[1]["contexts"] == ["contrastive", "gan", "rl"]


def test_only_what_is_selected_is_judged(check: Check):
    code, document = check("--select", "N,O003")
    assert (code, codes(document)) == (0, [])
    reasons = {each["code"]: each["reason"] for each in document["rules"]["not_evaluated"]}
    assert reasons["G006"] == "not selected"
    assert reasons["N001"] != "not selected"


@pytest.mark.parametrize(("entry", "fails"), [("G006@SGD", 0), ("G006@Adam*", 1), ("N", 1)])
def test_what_is_ignored_does_not_fail_and_is_listed(check: Check, entry: str, fails: int):
    code, document = check("--ignore", entry)
    assert code == fails
    reasons = [each["reason"] for each in document["silenced"]]
    assert reasons == ([] if fails else [f"ignored by --ignore: {entry}"])


def test_a_baseline_leaves_only_what_is_new(check: Check, tmp_path: Path):
    code, document = check("--write-baseline", "base.json")
    assert (code, codes(document)) == (1, ["G006"])
    code, document = check("--baseline", "base.json")
    assert (code, codes(document)) == (0, [])
    (silenced,) = document["silenced"]
    assert silenced["reason"] == "known: in the baseline base.json"
    assert silenced["fingerprint"] in (tmp_path / "base.json").read_text()


def test_the_nearest_file_counts_and_another_in_its_place(check: Check, tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text("[tool.traindx]\nignore = ['G006']\n")
    (tmp_path / "own.toml").write_text("[rules.G006]\nfraction = 0.9\n")
    assert check()[1]["silenced"][0]["reason"] == "ignored by pyproject.toml: G006"
    code, document = check("--config", "own.toml")
    assert (code, document["silenced"]) == (1, [])
    assert document["findings"][0]["thresholds"]["fraction"] == 0.9


def test_where_runs_are_kept_is_where_the_last_one_is_looked_for(
    trained: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    (file,) = run_files(trained)
    (tmp_path / "pyproject.toml").write_text(f"[tool.traindx]\nruns = '{file.parent}'\n")
    monkeypatch.setattr("sys.argv", ["traindx", "check", "--fail-on", "error"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 1
    assert "G006" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("settings", "words", "told"),
    [
        ("budgt = 1", (), "`pyproject.toml` knows no key `budgt`; the nearest is `budget`."),
        ("every = [", (), "`pyproject.toml` is not valid TOML"),
        ("baseline = 'no.json'", (), "Cannot read the baseline"),
        ("", ("--select", "X99"), "--select: There is no rule `X99`"),
        ("", ("--config", "none.toml"), "Cannot read `none.toml`"),
        ("", ("--budget", "3"), "--budget takes a number from 0 to 1; it is 3.0."),
    ],
)
def test_a_mistake_ends_a_run_before_the_script_starts(
    tmp_path: Path, settings: str, words: tuple[str, ...], told: str
):
    write(tmp_path / "script.py", "open('started', 'w').close()\n")
    write(tmp_path / "pyproject.toml", f"[tool.traindx]\n{settings}\n")
    done = run((TRAINDX, "run", *words, "script.py"), tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert told in done.stderr.decode()
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "started").exists()
    assert not (tmp_path / "traindx-runs").exists()
