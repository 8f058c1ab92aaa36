"""`traindx preflight`: a script is probed at its first step and stopped, a target is probed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.zoo.forks import Ended, Forks
from traindx.run import Run

MODEL = """
import atexit, os, sys
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 10))
x, y = torch.randn(32, 20), torch.randint(0, 10, (32,))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""
TRAIN = """
print("begun", flush=True)
os.system("echo from a child")
atexit.register(lambda: open("at_exit", "w").close())
for step in range(3):
    optimizer.zero_grad()
    F.cross_entropy(net(x * SCALE), y).backward()
    optimizer.step()
    open("stepped", "w").close()
torch.save(net.state_dict(), "final.pt")
"""


Preflight = Callable[..., Ended]
"""Runs `traindx preflight` in a folder."""


@pytest.fixture
def preflight(forks: Forks) -> Preflight:
    return lambda folder, *arguments: forks.run(folder, "preflight", *arguments, watched=True)


def written(folder: Path, body: str, scale: float = 1.0) -> str:
    text = MODEL + body.replace("SCALE", str(scale))
    (folder / "train.py").write_text(text, encoding="utf-8")
    return "train.py"


def document(done: Ended) -> dict[str, Any]:
    return json.loads(done.stdout)


def test_a_script_is_probed_before_its_first_step_and_stopped(tmp_path: Path):
    script = written(tmp_path, TRAIN)
    words = ("preflight", "--quick", "--json", "-", script, "--epochs", "3")
    done = subprocess.run(
        (sys.executable, "-m", "traindx", *words), cwd=tmp_path, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)  # standard output holds nothing else
    assert "begun" in done.stderr
    assert "from a child" in done.stderr
    assert "probes, about" in done.stderr
    flight = told["preflight"]
    assert flight["case"]["model"] == "net"
    assert flight["case"]["loss"] == "cross_entropy"
    assert flight["case"]["optimizer"] == "SGD"
    assert told["run"]["command"] == [script, "--epochs", "3"]
    looked = {probe["name"]: probe for probe in flight["probes"]}
    assert looked["loss-at-chance"]["seconds"] > 0
    assert all(probe["trace"] is None for probe in flight["probes"])
    assert (tmp_path / "at_exit").exists()
    assert not (tmp_path / "stepped").exists()
    assert not (tmp_path / "final.pt").exists()
    (file,) = (tmp_path / "traindx-runs").iterdir()
    assert re.fullmatch(r"train-preflight-\d{8}-\d{6}\.traindx", file.name)
    assert told["run"]["store"] == str(file)
    assert Run.load(file).header["script"] == "train"


def test_a_finding_decides_the_exit_code_and_the_page_is_written(
    tmp_path: Path, preflight: Preflight
):
    script = written(tmp_path, TRAIN, scale=100.0)
    select = ("--quick", "--select", "L001")
    done = preflight(tmp_path, *select, "--fail-on", "warning", "--html", "page.html", script)
    assert done.code == 1
    assert "1 warning, by" in done.stdout
    assert "L001 initial-loss-off" in done.stdout
    assert "begun" not in done.stdout
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "initial-loss-off" in page
    assert "left out by" in page
    assert preflight(tmp_path, *select, script).code == 0


def test_a_run_file_goes_where_it_should_and_keeps_no_secret(tmp_path: Path, preflight: Preflight):
    code = "import os; os.makedirs('elsewhere'); os.chdir('elsewhere')\n"
    (tmp_path / "train.py").write_text(code + MODEL + TRAIN.replace("SCALE", "1"), "utf-8")
    done = preflight(tmp_path, "--quick", "--runs", "mine", "train.py", "--api-key", "abc")
    assert done.code == 0, done.stderr
    (file,) = (tmp_path / "mine").iterdir()
    assert str(file) in done.stdout
    assert Run.load(file).header["command"] == ["train.py", "--api-key", "[redacted]"]
    done = preflight(tmp_path / "elsewhere", "--quick", "--no-command", "../train.py:net")
    assert done.code == 2  # it is a model, and no function that returns one
    assert not (tmp_path / "elsewhere" / "traindx-runs").exists()


REFUSES = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--epochs")
parser.parse_args()
"""


@pytest.mark.parametrize(("option", "ours"), [("--html=x.html", "--html"), ("--lr", "")])
def test_an_option_behind_the_script_is_told_to_stand_before_it(
    tmp_path: Path, option: str, ours: str, preflight: Preflight
):
    done = preflight(tmp_path, "--quick", written(tmp_path, REFUSES), "--epochs", "3", option)
    assert done.code == 2
    assert "unrecognized arguments" in done.stderr
    last = done.stderr.splitlines()[-1]
    if ours:
        assert f"`{ours}` stands behind the script" in last
        assert "put it before: `" in last
        assert f" preflight {ours} … SCRIPT`" in last
    else:
        assert "ended with exit code 2 before its first optimizer step" in last


NEVER = """
for _ in range(3):
    F.cross_entropy(net(x), y).backward()
"""
FAILS = """
raise ValueError("no data")
"""
FORKS = """
if os.fork() == 0:
    F.cross_entropy(net(x), y).backward()
    optimizer.step()
    os._exit(0)
os.wait()
"""
ENSEMBLE = """
params, buffers = torch.func.stack_module_state([net, net])
one = lambda p, b: torch.func.functional_call(net, (p, b), (x,))
F.cross_entropy(torch.func.vmap(one)(params, buffers).mean(0), y).backward()
optimizer.step()
"""


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (NEVER, "The script made 3 backward passes and no optimizer step"),
        (FAILS, "The script ended with exit code 1 before its first optimizer step"),
        (FORKS, "The script's own process took no optimizer step"),
        (ENSEMBLE, "The script calls its model inside a transform of `torch.func`"),
    ],
)
def test_a_script_that_never_steps_is_one_sentence(
    tmp_path: Path, body: str, words: str, preflight: Preflight
):
    done = preflight(tmp_path, "--quick", written(tmp_path, body))
    assert done.code == 2
    assert words in done.stderr
    assert done.stdout == ""


STUBBORN = """
while True:
    try:
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    except BaseException:
        print("goes on")
"""


def test_a_script_that_catches_its_end_is_ended_all_the_same(tmp_path: Path, preflight: Preflight):
    done = preflight(tmp_path, "--quick", "--json", "-", written(tmp_path, STUBBORN))
    assert done.code == 0, done.stderr
    assert document(done)["preflight"]["case"]["model"] == "net"


@pytest.mark.parametrize(
    ("returned", "loss"),
    [
        ("net, (x, y), F.cross_entropy, optimizer", "cross_entropy"),
        ("net, [((x, y))], nn.CrossEntropyLoss()", "cross_entropy"),
        ("net, (x,)", None),
    ],
)
def test_a_target_is_probed(tmp_path: Path, returned: str, loss: str | None, preflight: Preflight):
    if "[" in returned:
        returned = "net, iter([(x, y)]), nn.CrossEntropyLoss()"
    written(tmp_path, f"\nprint('imported')\ndef make():\n    return {returned}\n")
    done = preflight(tmp_path, "--quick", "--json", "-", "train.py:make")
    assert done.code == 0, done.stderr
    case = document(done)["preflight"]["case"]
    assert (case["model"], case["loss"], case["batch_size"]) == ("make", loss, 32)
    assert "imported" in done.stderr


def test_what_is_not_there_is_one_sentence(tmp_path: Path, preflight: Preflight):
    for arguments, words in (
        ((), "`traindx preflight` needs a script or a target"),
        (("nothing.py",), "There is no script `nothing.py`"),
        (("nothing.py:make",), "There is no file `nothing.py`"),
    ):
        done = preflight(tmp_path, *arguments)
        assert (done.code, done.stdout) == (2, "")
        assert words in done.stderr


def test_it_speaks_the_language_that_is_asked_for(tmp_path: Path, preflight: Preflight):
    done = preflight(tmp_path, "--quick", "--lang", "zh-Hant", written(tmp_path, TRAIN))
    assert "訓練前" in done.stdout
    assert "探測" in done.stderr
