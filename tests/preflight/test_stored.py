"""A preflight is a run like any other: its file is judged and shown offline, in the same words."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import traindx
from tests.preflight.cases import case_of, classifier, labelled
from traindx.findings import Verdict
from traindx.looks import looked
from traindx.preflight import checking
from traindx.preflight.case import Case
from traindx.report import json as document
from traindx.report import text
from traindx.report.html.page import render
from traindx.rules.engine import Engine
from traindx.run import Run
from traindx.store.reader import Stored
from traindx.store.writer import CannotStoreError, open_writer


def healthy() -> Case:
    return case_of(classifier(), labelled(), nn.CrossEntropyLoss())


def deep() -> Case:
    layers = [module for _ in range(8) for module in (nn.Linear(32, 32), nn.Sigmoid())]
    net = classifier(nn.Sigmoid(), *layers)
    optimizer = torch.optim.Adam(net.parameters())
    return case_of(net, labelled(), nn.CrossEntropyLoss(), optimizer)


def wrong_target() -> Case:
    x, y = labelled()
    return case_of(classifier(nn.Softmax(1)), (100 * x, y), nn.CrossEntropyLoss())


def broken() -> Case:
    net = classifier()
    with torch.no_grad():
        next(net.parameters())[0, 0] = float("nan")
    return case_of(net, labelled(), nn.CrossEntropyLoss())


def lossless() -> Case:
    return case_of(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), torch.randn(8, 3, 8, 8))


CASES = pytest.mark.parametrize("make", [healthy, deep, wrong_target, broken, lossless])


def stored(case: Case, folder: Path) -> Run:
    store = open_writer(folder, "net-preflight", datetime(2026, 1, 2, 3, 4, 5))
    return checking.check(case, quick=True, script="net", store=store)


def told(run: Run) -> Any:
    """What its JSON report says, in which NaN equals NaN."""
    return json.loads(document.render(run))


@CASES
def test_a_file_gives_the_findings_of_the_live_preflight(
    make: Callable[[], Case], tmp_path: Path
) -> None:
    live = stored(make(), tmp_path)
    path = tmp_path / "net-preflight-20260102-030405.traindx"
    assert live.path == path
    assert told(Run.load(path)) == told(live)
    engine = Engine(run=Run(path=path))
    for stretch in Stored(path):
        engine.replay(stretch)
    engine.close()
    assert told(engine.run) == told(live)
    assert text.render(engine.run) == text.render(live)
    assert render(engine.run) == render(live)


def test_a_file_holds_no_weights_where_none_are_wanted(tmp_path: Path) -> None:
    store = open_writer(tmp_path, "net-preflight", datetime(2026, 1, 2, 3, 4, 5))
    case = healthy()
    kept = checking.check(case, quick=True, script="net")
    left = checking.check(case, quick=True, first_weights=False, script="net", store=store)
    assert left.path is not None
    found = [run.vectors("first_layer.weights") for run in (kept, left, Run.load(left.path))]
    assert [bool(one) for one in found] == [True, False, False]


def test_a_file_tells_what_looked_at_what_cost_and_what_did_not(tmp_path: Path) -> None:
    path = stored(healthy(), tmp_path).path
    assert path is not None
    run = Run.load(path)
    assert (run.is_preflight, run.ended, run.steps) == (True, True, 0)
    probes = {probe.name: probe for probe in looked(run)}
    assert probes["loss-at-chance"].seconds is not None
    assert probes["overfit-tiny-subset"].reason == "left out by `--quick`: it trains"
    case = run.header["case"]
    assert isinstance(case, dict)
    assert case["loss"] == "cross_entropy"


OFFLINE = """
import sys
sys.modules["torch"] = None
from traindx.__main__ import main
sys.argv = ["traindx", *sys.argv[1:]]
main()
"""


def offline(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", OFFLINE, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_a_file_is_checked_and_shown_where_there_is_no_torch(tmp_path: Path) -> None:
    live = stored(deep(), tmp_path)
    assert isinstance(live.verdict, Verdict)
    name = str(live.path)
    checked = offline(tmp_path, "check", "--fail-on", "warning", "--json", "-", name)
    found: dict[str, Any] = json.loads(checked.stdout)
    assert checked.returncode == 1
    assert [one["code"] for one in found["findings"]] == [
        finding.code for finding in live.verdict.findings
    ]
    assert found["preflight"]["case"]["optimizer"] == "Adam"
    assert offline(tmp_path, "report", name, "-o", "page.html").returncode == 0
    shown = offline(tmp_path, "show", name).stdout.splitlines()
    assert re.fullmatch(r" +1 0 +Linear +0\.\d+ +\d\.\d+e-\d\d", shown[4]), shown
    compared = offline(tmp_path, "diff", name, name)
    assert "1 in both runs" in compared.stdout, compared


def test_from_python_it_is_saved_where_that_is_asked_for(tmp_path: Path) -> None:
    net, batch = classifier(), labelled()
    assert traindx.preflight(net, batch, nn.CrossEntropyLoss(), quick=True).path is None
    run = traindx.preflight(net, batch, nn.CrossEntropyLoss(), quick=True, folder=tmp_path)
    assert run.path is not None
    assert run.path.name.startswith("net-preflight-")
    assert Run.load(run.path).verdict == run.verdict
    (tmp_path / "file").touch()
    with pytest.raises(CannotStoreError, match="Cannot store the run"):
        traindx.preflight(net, batch, nn.CrossEntropyLoss(), folder=tmp_path / "file")


def test_half_a_preflight_leaves_no_file(tmp_path: Path) -> None:
    store = open_writer(tmp_path, "net-preflight", datetime(2026, 1, 2, 3, 4, 5))

    def interrupt(_plan: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        checking.check(healthy(), quick=True, tell=interrupt, store=store)
    assert [*tmp_path.iterdir()] == []
