import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks import peers
from benchmarks.detecting import running as detecting
from benchmarks.detecting.bounds import Rate
from benchmarks.detecting.programs import Program
from benchmarks.detecting.running import line
from benchmarks.peering.running import Job, Outcome, jobs, outcomes, read
from benchmarks.peering.table import MARK, Report, Seen, apart, overall, write
from benchmarks.peering.tools import TOOLS, Tool
from benchmarks.peering.watching import Peer, Watch

# -- watching --------------------------------------------------------------------------------------


class Notes(Peer):
    """Writes down what it is told."""

    def __init__(self, watch: Watch) -> None:
        super().__init__(watch)
        self.told: list[tuple[Any, ...]] = []

    def model(self, model: nn.Module, optimizer: Any) -> None:
        self.told.append(("model", model, optimizer))

    def entered(self, module: nn.Module, name: str, args: tuple[Any, ...]) -> None:
        self.told.append(("entered", name))

    def left(self, module: nn.Module, name: str, args: Any, kwargs: Any, output: Any) -> None:
        self.told.append(("left", name, tuple(output.shape)))

    def scored(self, name: str, inputs: Tensor, target: Any) -> None:
        self.told.append(("scored", name))

    def validated(self, loss: float) -> None:
        self.told.append(("validated", round(loss, 3)))

    def backward(self, loss: Tensor) -> None:
        self.told.append(("backward", round(float(loss.detach()), 3)))

    def stepping(self, optimizer: Any, loss: Tensor) -> None:
        self.told.append(("stepping", self.watch.steps))

    def stepped(self, optimizer: Any) -> None:
        self.told.append(("stepped", self.watch.steps))


class Clumsy(Notes):
    """Fails at the first step."""

    def stepped(self, optimizer: Any) -> None:
        raise RuntimeError("cannot")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(2, 2)
        self.head = nn.Linear(2, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.encoder(x))


def train(steps: int = 1) -> list[float]:
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    x, losses = torch.ones(3, 2), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), torch.zeros(3, 1))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        F.mse_loss(net(x), torch.zeros(3, 1))
    return losses


def notes(watch: Watch) -> list[tuple[Any, ...]]:
    (peer,) = watch.peers
    assert isinstance(peer, Notes)
    return peer.told


def test_a_tool_is_told_what_happens_in_the_order_in_which_its_lines_would_stand():
    with Watch([Notes]) as watch:
        (loss,) = train()
    told = notes(watch)
    assert [event for event, *_ in told] == [
        *("model", "entered", "entered", "left", "entered", "left", "left"),
        *("scored", "backward", "stepping", "stepped", "validated"),
    ]
    assert [rest for event, *rest in told if event == "entered"] == [[""], ["encoder"], ["head"]]
    assert ("left", "head", (3, 1)) in told
    assert ("backward", round(loss, 3)) in told
    assert told[-2:-1] == [("stepped", 1)]


def test_a_model_comes_with_its_optimizer_once_also_if_a_part_of_it_is_called():
    with Watch([Notes]) as watch:
        net = Net()
        other = torch.optim.SGD([nn.Parameter(torch.ones(1))])
        optimizer = torch.optim.SGD(net.parameters())
        for _ in range(2):
            net.head(net.encoder(torch.ones(1, 2)))
    models = [rest for event, *rest in notes(watch) if event == "model"]
    assert models == [[net, optimizer]]
    assert watch.name(net.head) == "head"
    assert other is not optimizer


def test_what_is_not_trained_is_not_told():
    with Watch([Notes]) as watch:
        torch.optim.SGD(nn.Linear(1, 1).parameters())
        frozen = Net().requires_grad_(False)
        frozen(torch.ones(1, 2))
        with torch.no_grad():
            Net()(torch.ones(1, 2))
    assert notes(watch) == []


def test_nothing_is_left_behind_and_a_training_is_the_same_bit_for_bit():
    before = (torch.optim.Optimizer.__init__, torch.autograd.backward, F.mse_loss)
    bare = train(5)
    with Watch([TOOLS[name].peer for name in ("nonfinite", "anomaly", "debugger")]):
        watched = train(5)
    assert watched == bare
    assert (torch.optim.Optimizer.__init__, torch.autograd.backward, F.mse_loss) == before
    assert not torch.is_anomaly_enabled()
    with Watch([Notes]) as watch:
        pass
    train()
    assert notes(watch) == []


def test_a_tool_that_fails_says_why_and_the_others_go_on():
    with Watch([Clumsy, Notes]) as watch:
        losses = train(2)
    clumsy, other = watch.peers
    assert isinstance(clumsy, Notes)
    assert isinstance(other, Notes)
    assert clumsy.failure == "RuntimeError: cannot"
    assert ("stepped", 2) in other.told
    assert len(losses) == 2
    assert sum(event == "backward" for event, *_ in clumsy.told) == 1


# -- jobs ------------------------------------------------------------------------------------------


def fault(name: str = "faults/a", place: str = "encoder", **more: Any) -> Program:
    return Program(name, Path("/nowhere/a.py"), "d", "G003", place, **more)


def outcome(program: Program, tool: str = "gradsnitch", **more: Any) -> Outcome:
    made = {"seed": 0, "twin": False, "alarms": {}, "failure": "", "steps": 9, "seconds": 1.0}
    return Outcome(program.name, program.digest, tool=tool, version="1", **{**made, **more})


def test_tools_that_can_watch_together_do_and_what_is_known_is_not_run_again():
    program, healthy = fault(), Program("healthy/b", Path("/nowhere/b.py"), "e")
    names = ("nonfinite", "debugger", "nn-htop")
    made = jobs([program, healthy], range(2), names, [])
    assert [job.tools for job in made[:3]] == [("nonfinite", "debugger")] * 3
    assert [job.tools for job in made[3:6]] == [("nn-htop",)] * 3
    assert len(made) == 12
    known = [outcome(program, tool) for tool in names]
    left = jobs([program, healthy], range(2), names, known)
    assert len(left) == 10
    assert (program.name, program.digest, 0, False) not in {job.key for job in left}
    missing = jobs([program], range(1), names, known[:1])
    assert [job.tools for job in missing] == [("debugger",), names[:2], names[2:], names[2:]]


def test_a_results_file_is_read_back_without_a_line_that_was_cut_off(tmp_path: Path):
    file = tmp_path / "results.jsonl"
    made = outcome(fault(), alarms={"GS001": {"step": 3, "sites": ["a"]}})
    file.write_text(line(made) + line(made)[:40], encoding="utf-8")
    assert read(file) == [made]
    assert read(tmp_path / "none.jsonl") == []


BROKEN = """
import sys, torch
from torch import nn
x = torch.ones(8, 2)
net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    out = net(x)
    factor = 1.0 if "--healthy" in sys.argv or step < 2 else float("nan")
    (out * factor).sum().backward()
    optimizer.step()
"""


@pytest.mark.slow
def test_a_run_that_anomaly_mode_ends_is_watched_by_the_others_again(tmp_path: Path):
    path = tmp_path / "broken.py"
    path.write_text(BROKEN, encoding="utf-8")
    program = Program("faults/broken", path, "d", "F006")
    wanted = [Job(program, 0, twin, ("nonfinite", "anomaly", "debugger")) for twin in (False, True)]
    made = [it for _, said in outcomes(wanted, 1) for it in said]
    by_tool = {(it.tool, it.twin): it for it in made}
    assert len(made) == len(by_tool) == 6
    assert all(not it.failure for it in made)
    assert by_tool["anomaly", False].alarms == {"nan": {"step": 2, "sites": []}}
    assert by_tool["anomaly", False].steps == 2
    first = by_tool["nonfinite", False]
    assert first.steps == 4
    assert first.alarms["loss"]["step"] == 2
    assert "0.weight" in first.alarms["gradient"]["sites"]
    assert by_tool["nonfinite", True].alarms == by_tool["anomaly", True].alarms == {}


@pytest.mark.slow
def test_a_program_that_ends_in_an_error_is_a_failure_of_each_tool(tmp_path: Path):
    path = tmp_path / "broken.py"
    path.write_text("raise ValueError('no data')\n", encoding="utf-8")
    wanted = [Job(Program("healthy/broken", path, "d"), 0, False, ("nonfinite", "debugger"))]
    made = [it for _, said in outcomes(wanted, 1) for it in said]
    assert [(it.tool, it.failure) for it in made] == [
        ("nonfinite", "ValueError: no data"),
        ("debugger", "ValueError: no data"),
    ]


# -- the table -------------------------------------------------------------------------------------


def seen(program: Program, *codes: str, twin: bool = False, at: str = "") -> Seen:
    return Seen(program, 0, twin, {code: frozenset({at} - {""}) for code in codes})


def test_an_alarm_tells_a_fault_from_its_twin_only_if_the_twin_has_another():
    one, other = fault("faults/a"), fault("faults/b")
    runs = [
        *(seen(one, "A", "B"), seen(one, "A", twin=True)),
        *(seen(other, "A"), seen(other, "A", twin=True)),
        seen(fault("faults/c"), "A"),
    ]
    assert apart(runs) == Rate(1, 2)
    assert apart(runs, "B") == Rate(1, 2)
    assert apart(runs, "A") == Rate(0, 2)


@pytest.mark.parametrize(
    ("site", "right"), [("encoder", True), ("encoder.weight", True), ("encoder.0.bias", False)]
)
def test_a_place_is_named_by_any_alarm_at_it_or_at_a_parameter_of_it(site: str, right: bool):
    assert seen(fault(), "GS001", at=site).is_placed is right


def finding(code: str, severity: str = "error", **more: Any) -> dict[str, Any]:
    return {"code": code, "severity": severity, "site": "encoder", "layers": [], **more}


def ours(program: Program, mode: str, *findings: dict[str, Any], twin: bool = False) -> Any:
    return detecting.Outcome(
        program.name, program.digest, "s", 0, twin, mode, list(findings), 1.0, 9
    )


def report(**more: Any) -> Report:
    program = fault(kind="mode")
    made: dict[str, Any] = {
        "programs": [program],
        "seeds": range(1),
        "outcomes": [
            outcome(program, alarms={"GS008": {"step": 3, "sites": ["SGD"]}}),
            outcome(program, twin=True, failure="KeyError: 'a'"),
        ],
        "found": [
            ours(program, "run", finding("O001", "warning"), finding("S011", "info")),
            ours(program, "preflight", finding("G003")),
            ours(program, "run", twin=True),
            ours(program, "preflight", finding("L001", "info"), twin=True),
        ],
        "missing": {"nn-htop": "nn-htop is not installed"},
        "command": "c",
    }
    return Report(**{**made, **more})


def test_traindx_is_counted_as_the_others_are_and_information_is_no_alarm():
    runs = report().runs()
    assert [it.alarms.keys() for it in runs["traindx run"]] == [{"O001"}, set()]
    assert [it.alarms.keys() for it in runs["traindx run and preflight"]] == [
        {"O001", "G003"},
        set(),
    ]
    assert runs["traindx run and preflight"][0].is_right
    assert not runs["traindx run"][0].is_right


def test_the_tables_tell_alarms_places_failures_and_what_was_not_run():
    text = report().text()
    half = fault().half
    one, none = "1/1 = 100% (3% to 100%)", "0/1 = 0% (0% to 98%)"
    assert f"| gradsnitch | {half} | {one} | {one} | {none} | - | {none} | 1 |" in text
    assert f"| traindx run | {half} | {one} | {one} | {one} | {none} | {none} | 0 |" in text
    assert f"| gradsnitch | GS008 | {one} | {one} | {none} |" in text
    assert "Not run: nn-htop, nn-htop is not installed." in text
    assert "gradsnitch 1" in text


def test_only_faults_of_a_kind_are_counted_where_they_are_asked_for():
    runs = {"gradsnitch": [seen(fault(kind="mode"), "A"), seen(fault("faults/b", kind="data"))]}
    told = overall(runs, lambda program: program.kind == "mode")
    assert "1/1 = 100%" in told
    assert "1/2" not in told


def test_a_run_of_a_program_that_has_changed_does_not_count():
    changed = dataclasses.replace(fault(), digest="e")
    assert report(programs=[changed]).runs() == {}


def test_the_last_outcome_of_a_run_counts():
    program = fault()
    made = [outcome(program), outcome(program, alarms={"GS001": {"step": 0, "sites": []}})]
    (run,) = report(programs=[program], outcomes=made).runs()["gradsnitch"]
    assert run.alarms == {"GS001": frozenset()}


def test_the_page_is_written_behind_its_marker_and_again(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(f"# Mine\n\n{MARK}\nold\n", encoding="utf-8")
    write(report(), page)
    once = page.read_text(encoding="utf-8")
    write(report(), page)
    assert page.read_text(encoding="utf-8") == once
    assert once.startswith(f"# Mine\n\n{MARK}\n\n`c`: ")
    page.write_text("# Mine\n", encoding="utf-8")
    with pytest.raises(ValueError, match="needs the line"):
        write(report(), page)


# -- the command -----------------------------------------------------------------------------------


def test_what_is_known_is_told_without_a_run_and_what_is_missing_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    program = next(p for p in peers.programs() if p.name == "faults/no_zero_grad")
    file = tmp_path / "results.jsonl"
    made = outcome(program, alarms={"GS006": {"step": 90, "sites": []}})
    file.write_text(line(made), encoding="utf-8")
    absent = Tool("absent", Peer, "together", "absent-package", "absent_package")
    monkeypatch.setitem(TOOLS, "nn-htop", absent)
    words = ["--only", "no_zero_grad", "--jobs", "0", "--results", str(file)]
    words += ["--detection", str(tmp_path / "none"), "--tools", "gradsnitch", "nn-htop"]
    assert peers.main(words) == 0
    told = capsys.readouterr().out
    assert f"| gradsnitch | {program.half} | 1/1 = 100%" in told
    assert "Not run: absent, absent-package is not installed." in told
    assert "traindx run" not in told


def test_the_first_programs_are_a_sample_in_the_order_of_their_hashes(
    monkeypatch: pytest.MonkeyPatch,
):
    taken: list[Report] = []
    monkeypatch.setattr(Report, "text", lambda self: taken.append(self) or "")
    assert peers.main(["--jobs", "0", "--first", "5", "--results", "none", "--seeds", "2"]) == 0
    digests = [program.digest for program in taken[0].programs]
    assert digests == sorted(program.digest for program in peers.programs())[:5]


def test_every_tool_of_the_page_is_here_and_says_what_it_needs():
    for name, tool in TOOLS.items():
        assert bool(tool.package) == bool(tool.module), name
    assert json.loads(line(outcome(fault())))["tool"] == "gradsnitch"
