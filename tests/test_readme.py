"""The READMEs: both say the same, and what they show is what traindx does."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
from functools import cache, partial
from pathlib import Path

import pytest

import traindx
from traindx import config
from traindx.rules.catalog import catalog

ROOT = Path(__file__).parents[1]
ENGLISH = (ROOT / "README.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "README.zh-Hant.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"traindx(?: --lang zh-Hant)? ([a-z]+)")
PLAIN = ("--config", os.devnull)
SAMPLE = re.compile(r"-?\d+(?:\.\d+)?|[^\s\d]+")

each_readme = pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["en", "zh-Hant"])


def blocks(text: str, kind: str) -> list[str]:
    """The code blocks of one kind."""
    return [body for found, body in BLOCK.findall(text) if found == kind]


def bare(code: str) -> list[str]:
    """Code without its comments."""
    return [re.sub(r"\s+#.*", "", line) for line in code.splitlines()]


def first_cells(text: str) -> list[str]:
    """What the tables tell of: the first cell of each row that is code."""
    return re.findall(r"^\| (`[^|]+`) \|", text, re.MULTILINE)


def linked(text: str) -> list[str]:
    """The files that it links to."""
    return re.findall(r"\]\(([^)#]+)[^)]*\)", BLOCK.sub("", text))


def printed(*words: str | Path) -> str:
    """What a command prints, whatever its exit code; `run` leaves standard output to the script."""
    command = [sys.executable, "-m", "traindx", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@cache
def options() -> str:
    """Everything that the help of some commands tells of."""
    return "".join(printed(command, "--help") for command in ("run", "check", "diff", "report"))


# -- both are one document -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["console", "python", "toml"])
def test_both_have_the_same_code(kind: str):
    english, chinese = blocks(ENGLISH, kind), blocks(CHINESE, kind)
    assert english
    assert [bare(code) for code in chinese] == [bare(code) for code in english]


def test_both_have_the_same_tables():
    assert first_cells(CHINESE) == first_cells(ENGLISH) != []


def test_both_have_as_many_sections_and_items():
    for sign in (r"^#{1,3} ", r"^- ", r"^\| "):
        count = len(re.findall(sign, ENGLISH, re.MULTILINE))
        assert len(re.findall(sign, CHINESE, re.MULTILINE)) == count > 0


def test_both_link_to_the_same_files():
    other = {"README.md": "README.zh-Hant.md"}
    assert sorted(other.get(name, name) for name in linked(CHINESE)) == sorted(linked(ENGLISH))


def test_both_name_the_same_numbers():
    """Measured costs, accuracies, versions and thresholds of the running text."""

    def numbers(text: str) -> list[str]:
        return sorted(set(re.findall(r"\d+\.\d+|\d{3,}", BLOCK.sub("", text))))

    assert numbers(CHINESE) == numbers(ENGLISH)


# -- what they name is there -----------------------------------------------------------------------


@each_readme
def test_each_linked_file_is_there(text: str):
    assert linked(text)
    assert [name for name in linked(text) if not (ROOT / name).exists()] == []


@each_readme
def test_each_command_is_one(text: str):
    known = set(re.findall(r"^  ([a-z]+)  ", printed("--help").split("Commands:")[1], re.MULTILINE))
    named = {c for cell in first_cells(text) for c in COMMAND.findall(cell)}
    assert named == known


@each_readme
def test_each_option_of_traindx_is_one(text: str):
    offered = options()
    prose = re.sub(r"`python .*?`", "", BLOCK.sub("", text))  # benchmarks have options of their own
    named = set(re.findall(r"--[a-z][a-z-]+", prose)) - {"--help"}
    assert {option for option in named if option not in offered} == set()


@each_readme
def test_each_rule_is_one(text: str):
    named = set(re.findall(r"([A-Z]\d{3}) ([a-z]+(?:-[a-z]+)+)", text))
    assert named
    assert {(rule.code, rule.name) for rule in catalog().values()} >= named


@each_readme
def test_each_make_target_is_one(text: str):
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert set(re.findall(r"make ([a-z-]+)", text)) <= set(targets)


@each_readme
def test_the_settings_are_settings(text: str, tmp_path: Path):
    (settings,) = blocks(text, "toml")
    file = tmp_path / "pyproject.toml"
    file.write_text(settings, encoding="utf-8")
    baseline = '{"schema": 1, "findings": []}'
    (tmp_path / "traindx-baseline.json").write_text(baseline, encoding="utf-8")
    assert config.load(file).judging().contexts


@each_readme
def test_the_notebook_code_runs(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import torch
    from torch import nn

    def train(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(8, 4)).square().mean().backward()
            optimizer.step()

    monkeypatch.chdir(tmp_path)
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    names = {"model": model, "optimizer": torch.optim.SGD(model.parameters(), 0.1), "train": train}
    watching, loading = blocks(text, "python")
    exec(watching, names)
    (run,) = tmp_path.glob("traindx-runs/*.traindx")
    assert run.with_suffix(".html").exists()
    assert [series.last for series in names["run"].series("logged")] == [0.31]
    assert all(hasattr(traindx.Run, name) for name in re.findall(r"plot_[a-z]+", watching))

    named = re.search(r'"(traindx-runs/.*?)"', loading)
    assert named
    exec(loading.replace(named[1], str(run)), names)
    assert names["series"].site.fqn


# -- what they show is what it does ----------------------------------------------------------------


def test_the_picture_is_one_of_the_page():
    picture = (ROOT / "docs" / "images" / "page.png").read_bytes()
    width, height = struct.unpack(">II", picture[16:24])
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    assert (width, len(picture) < 300_000) == (1280, True)
    assert 800 < height < 1600


def same(shown: str, said: str, points: int = 0) -> bool:
    """Whether both are the same words, and numbers that differ by no more than rounding.

    Whole numbers, as of percents, may differ by some `points`.
    """
    ours, theirs = SAMPLE.findall(shown), SAMPLE.findall(said)
    agree = partial(_agree, points)
    return len(ours) == len(theirs) and all(map(agree, ours, theirs))


def _agree(points: int, one: str, other: str) -> bool:
    try:
        number, within = float(one), 0 if "." in one else points
        return number == pytest.approx(float(other), rel=0.02, abs=within)
    except ValueError:
        return one == other


@pytest.fixture(scope="module")
def stale(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run and the weights of the demo's stale_batchnorm.py."""
    folder = tmp_path_factory.mktemp("stale")
    script = ROOT / "src" / "traindx" / "demo" / "stale_batchnorm.py"
    printed("run", *PLAIN, "--runs", folder, "--quiet", script, "--save", folder / "weights.pt")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("text", "language"), [(ENGLISH, "en"), (CHINESE, "zh-Hant")])
def test_the_finding_is_what_traindx_prints(text: str, language: str, stale: Path):
    (run,) = stale.glob("*.traindx")
    (shown,) = blocks(text, "text")
    said = printed("--lang", language, "check", *PLAIN, run)
    assert same(shown, said[: said.index("\n\n", said.index("N002"))])


@pytest.mark.slow
@each_readme
def test_the_accuracies_are_those_of_the_demo(text: str, stale: Path):
    from traindx.demo.evaluate import accuracies

    named = re.findall(r"\b0\.\d{3}\b", BLOCK.sub("", text))[:2]
    found = accuracies("stale_batchnorm", stale / "weights.pt")
    assert [float(number) for number in named] == pytest.approx(found, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "language"), [(ENGLISH, "en"), (CHINESE, "zh-Hant")])
def test_the_audit_and_the_repair_are_what_traindx_prints(text: str, language: str, stale: Path):
    shown = blocks(text, "txt")[0]
    words = ("traindx.demo.targets:fashion_mnist", "--checkpoint", stale / "weights.pt")
    said = printed("--lang", language, "norm", "audit", *words)
    head = shown.splitlines()[0].strip()
    start = said.index(head)
    assert same(shown, "\n".join(said[start:].splitlines()[: len(shown.splitlines())]))

    before, after = json.loads(printed("norm", "recalibrate", *words, "--json", "-"))["scores"]
    assert f"{before:.3f}" in text
    assert f"{after:.3f}" in text


@pytest.mark.parametrize(("text", "language"), [(ENGLISH, "en"), (CHINESE, "zh-Hant")])
def test_the_signals_are_what_traindx_prints(text: str, language: str):
    """But for the numbers: the demo's weights are drawn anew each time."""
    shown = blocks(text, "txt")[1].splitlines()
    target = ("traindx.demo.sigmoid_chain:build_model", "--shape", "64x784")
    said = printed("--lang", language, "signal", *target).splitlines()
    start = next(i for i, line in enumerate(said) if line.split() == shown[0].split())
    names = [line.split()[:2] for line in said[start + 1 : start + len(shown)]]
    assert names == [line.split()[:2] for line in shown[1:]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "parts"),
    [
        (
            "softmax_before_cross_entropy",
            ("L002 double-softmax", "1.461", "loss = F.cross_entropy(scores, target)"),
        ),
        (
            "log_of_silence",
            ("F006 nonfinite-origin", "57", "[9, 0]", "torch.log(x.clamp_min(1e-8))"),
        ),
    ],
)
def test_the_other_findings_are_those_of_the_zoo(
    program: str, parts: tuple[str, ...], tmp_path: Path
):
    path = ROOT / "zoo" / "faults" / f"{program}.py"
    said = printed("run", *PLAIN, "--runs", tmp_path, "--trap-nan", path)
    for part in parts:
        assert part in said
        assert part in ENGLISH
        assert part in CHINESE
    ranges = [re.findall(r"between\s+0\s+and\s+(\d+\.\d+)", text) for text in (said, ENGLISH)]
    for found in ranges[0]:  # how far training got by then: processors round differently
        assert float(found) == pytest.approx(float(ranges[1][0]), rel=0.1)


@pytest.mark.slow
@pytest.mark.browser
def test_the_picture_can_be_taken_again(tmp_path: Path):
    output = tmp_path / "page.png"
    command = [sys.executable, ROOT / "scripts" / "screenshot.py", "-o", output]
    subprocess.run(command, check=True, capture_output=True)
    assert struct.unpack(">I", output.read_bytes()[16:20]) == (1280,)
