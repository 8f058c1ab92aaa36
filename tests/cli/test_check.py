"""`traindx check` judges a saved run as it was judged live, and refuses what is none."""

from __future__ import annotations

import json
import shutil
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.twins import TRAINDX, Command, run, run_files, write
from traindx.cli.outcome import failed
from traindx.findings import Evidence, Finding, Severity, Verdict
from traindx.records import Event, EventKind, Site
from traindx.run import Run
from traindx.store.writer import Writer

UNCLEARED = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.Sigmoid(), nn.BatchNorm1d(8), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for i in range(60):
        loss = model(torch.randn(16, 8)).pow(2).mean()
        loss.backward()
        optimizer.step()  # and no zero_grad
        if i % 20 == 0:
            with torch.no_grad():
                model.eval()(torch.randn(16, 8))
            model.train()
    print("trained")
"""


FINDING = Finding(1, "X001", "x", Severity.ERROR, True, Evidence(Site(""), 0, "x", {}), 0, 0, 1)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a faulty script was run, with its verdict in `live.json`."""
    folder = tmp_path_factory.mktemp("trained")
    write(folder / "script.py", UNCLEARED)
    words = ("run", "--json", "live.json", "--fail-on", "error", "script.py")
    done = run((TRAINDX, *words), folder)
    assert (done.returncode, done.stdout) == (1, b"trained\n"), done.stderr.decode()
    assert b"G006" in done.stderr
    return folder


def document(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "live.json").read_text("utf-8"))


def test_the_verdict_on_a_saved_run_is_the_one_given_live(trained: Path, traindx: Command):
    (file,) = run_files(trained)
    code, out, err = traindx("check", file, "--json", "-")
    saved, live = json.loads(out), document(trained)
    assert (code, err) == (1, "")
    assert saved["findings"] == live["findings"]
    assert saved["rules"] == live["rules"]
    assert saved["run"] == {**live["run"], "store": str(file)}
    assert {finding["code"] for finding in live["findings"]} >= {"G006"}


def test_the_document_has_the_keys_that_are_promised(trained: Path):
    written = document(trained)
    promised = Path(__file__).parents[2].joinpath("docs", "json.md").read_text("utf-8")
    example = json.loads(promised.split("```json\n")[1].split("```")[0])
    assert list(written) == list(example)
    assert written["run"].keys() == example["run"].keys()
    assert all(f.keys() == example["findings"][0].keys() for f in written["findings"])
    assert written["run"]["command"] == ["script.py"]
    assert (written["run"]["exit_code"], written["run"]["steps"]) == (0, 60)


def test_a_run_without_findings_is_a_success(traindx: Command, tmp_path: Path):
    writer = Writer(tmp_path / "clean.traindx")
    writer.write([Event(0, EventKind.ENDED, detail={"exit_code": 0, "steps": 1})])
    writer.close()
    assert traindx("check", writer.path, "--fail-on", "info")[0] == 0


@pytest.mark.parametrize("found", Severity)
@pytest.mark.parametrize("threshold", Severity)
def test_a_finding_as_severe_as_asked_or_more_fails(found: Severity, threshold: Severity):
    order = [Severity.INFO, Severity.WARNING, Severity.ERROR]
    judged = Run()
    judged.verdict = Verdict((replace(FINDING, severity=found),))
    assert failed(judged, threshold) == (order.index(found) >= order.index(threshold))


def test_the_last_run_of_the_folder_is_checked_by_default(
    trained: Path, traindx: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.chdir(trained)
    code, out, err = traindx("check", "--json", tmp_path / "verdict.json")
    assert (code, err) == (1, "")
    assert "G006" in out
    written = json.loads((tmp_path / "verdict.json").read_text("utf-8"))
    assert written["findings"] == document(trained)["findings"]


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-5000])


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:50])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def scribbled(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[4096:] = bytes(len(content) - 4096)
    file.write_bytes(content)


def foreign(file: Path) -> None:
    file.unlink()
    with closing(sqlite3.connect(file)) as db:
        db.execute("CREATE TABLE other (x)")


def text(file: Path) -> None:
    file.write_text("epoch,loss\n1,0.5\n")


def checkpoint(file: Path) -> None:
    file.write_bytes(b"PK\3\4" + bytes(1000))


def newer(file: Path) -> None:
    with file.open("r+b") as stream:
        stream.seek(60)
        stream.write(struct.pack(">I", 999))


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def missing(file: Path) -> None:
    file.unlink()


SPOILED = [cut, cut_short, empty, scribbled, foreign, text, checkpoint, newer, folder, missing]


@pytest.mark.parametrize("spoil", SPOILED, ids=lambda spoil: spoil.__name__)
@pytest.mark.parametrize("words", [("check",), ("check", "--json", "-"), ("report",)], ids=str)
def test_what_is_no_run_file_is_refused_in_one_message(
    trained: Path, traindx: Command, tmp_path: Path, spoil: Callable[[Path], None], words: Any
):
    file = tmp_path / "spoiled.traindx"
    shutil.copy(run_files(trained)[0], file)
    spoil(file)
    code, out, err = traindx(*words, file)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert err.startswith("traindx: ")
    assert "spoiled.traindx" in err
    assert sorted(tmp_path.iterdir()) in ([], [file])


@pytest.mark.parametrize("command", ["check", "report"])
def test_without_any_run_the_message_says_how_to_get_one(
    traindx: Command, command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.chdir(tmp_path)
    code, out, err = traindx(command)
    assert (code, out) == (2, "")
    assert "`traindx run SCRIPT` makes one" in err


def test_a_verdict_that_cannot_be_written_is_a_usage_error(
    trained: Path, traindx: Command, tmp_path: Path
):
    (file,) = run_files(trained)
    code, out, err = traindx("check", file, "--json", tmp_path / "nowhere" / "x.json")
    assert (code, out) == (2, "")
    assert err.startswith("traindx: Cannot write `")


def test_an_unknown_severity_is_a_usage_error(trained: Path, traindx: Command):
    code, out, err = traindx("check", run_files(trained)[0], "--fail-on", "bad")
    assert (code, out) == (2, "")
    assert "--fail-on" in err


def test_a_report_is_a_page_beside_its_run_or_where_it_is_wanted(
    trained: Path, traindx: Command, tmp_path: Path
):
    file = shutil.copy(run_files(trained)[0], tmp_path / "a.traindx")
    assert traindx("report", file) == (0, f"{tmp_path / 'a.html'}\n", "")
    page = (tmp_path / "a.html").read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert "missing-zero-grad" in page
    wanted = tmp_path / "page.html"
    assert traindx("report", file, "-o", wanted) == (0, f"{wanted}\n", "")
    code, out, _ = traindx("report", file, "-o", "-")
    assert (code, out.strip()) == (0, page.strip())


def test_a_report_that_cannot_be_written_is_a_usage_error(
    trained: Path, traindx: Command, tmp_path: Path
):
    code, out, err = traindx("report", run_files(trained)[0], "-o", tmp_path / "no" / "x.html")
    assert (code, out) == (2, "")
    assert err.startswith("traindx: Cannot write `")
