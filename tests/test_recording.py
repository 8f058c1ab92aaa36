"""`traindx.log`: numbers of the program's own, in the run that is being recorded."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import traindx
from traindx.records import EventKind, Site
from traindx.run import Run

torch = pytest.importorskip("torch")
nn = torch.nn


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "C")


def train(*logged: Any, steps: int = 1, every: int | None = 1) -> Run:
    """A training of as many steps for each thing that is logged after them."""
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with traindx.watch(net, every=every) as w:
        for values in logged:
            for _ in range(steps):
                optimizer.zero_grad()
                net(torch.ones(2, 4)).pow(2).mean().backward()
                optimizer.step()
            traindx.log(values)
    (file,) = Path("traindx-runs").iterdir()
    saved = Run.load(file)
    assert values_of(saved) == values_of(w.run)
    return saved


def values_of(run: Run) -> dict[str, list[tuple[int, float]]]:
    found = {series.site: [*series] for series in run.series("logged")}
    assert all(site.model == "" for site in found)
    return {site.fqn: values for site, values in found.items()}


def notes(run: Run) -> list[str]:
    return [str(event.detail["text"]) for event in run.events(EventKind.NOTE)]


def test_numbers_stand_at_the_number_of_steps_completed() -> None:
    run = train({"val/loss": 0.5}, {"val/loss": 0.25, "accuracy": 1}, steps=3)
    assert values_of(run) == {"val/loss": [(3, 0.5), (6, 0.25)], "accuracy": [(6, 1.0)]}


def test_names_may_be_keywords() -> None:
    net = nn.Linear(4, 1)
    with traindx.watch(net) as w:
        net(torch.ones(2, 4)).sum().backward()
        torch.optim.SGD(net.parameters(), lr=0.1).step()
        traindx.log({"a": 1}, val_loss=0.5)
    assert values_of(w.run) == {"a": [(1, 1.0)], "val_loss": [(1, 0.5)]}


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0.5, 0.5),
        (3, 3.0),
        (True, 1.0),
        (-(2**60), -(2.0**60)),
        (np.float32(0.5), 0.5),
        (np.int64(7), 7.0),
        (np.bool_(True), 1.0),
        (np.array(2.5), 2.5),
        (np.array([[2.5]]), 2.5),
        (Decimal("0.5"), 0.5),
        (Fraction(1, 4), 0.25),
        (torch.tensor(1.5), 1.5),
        (torch.tensor([1.5], requires_grad=True), 1.5),
        (torch.tensor(2, dtype=torch.int32), 2.0),
        (torch.tensor(0.5, dtype=torch.bfloat16), 0.5),
        (float("inf"), float("inf")),
    ],
)
def test_whatever_is_one_number_is_taken(value: object, number: float) -> None:
    run = train({"x": value})
    assert (values_of(run), notes(run)) == ({"x": [(1, number)]}, [])


class Broken:
    def __float__(self) -> float:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "value",
    [
        None,
        "0.5",
        [0.5],
        {"a": 1.0},
        1j,
        10**400,
        np.zeros(3),
        np.array(["a"]),
        np.complex64(1),
        torch.zeros(2),
        torch.zeros(0),
        torch.tensor(1j),
        torch.zeros((), device="meta"),
        Broken(),
        object,
    ],
)
def test_whatever_is_none_is_left_out_and_told_once(
    value: object, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train({"x": value, "y": 1}, {"x": value}, {"x": 2})
    assert values_of(run) == {"y": [(1, 1.0)], "x": [(3, 2.0)]}
    (note,) = notes(run)
    assert note.startswith("`traindx.log` takes single numbers, and `x` is a ")
    assert capsys.readouterr().err == f"traindx: {note}\n"


def test_a_number_without_a_name_is_left_out_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    run = train(0.5, 0.25)
    assert values_of(run) == {}
    assert notes(run)[0].endswith("Write `traindx.log(val_loss=...)`.")
    assert capsys.readouterr().err.count("traindx:") == 1


def test_the_last_one_of_a_name_and_step_counts() -> None:
    net = nn.Linear(4, 1)
    with traindx.watch(net) as w:
        net(torch.ones(2, 4)).sum().backward()
        torch.optim.SGD(net.parameters(), lr=0.1).step()
        for value in range(100):
            traindx.log(x=value)
    assert values_of(w.run) == {"x": [(1, 99.0)]}


class Wordless:
    """What has no text."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Unreadable(Mapping[str, float]):
    """A mapping that cannot be read."""

    def __getitem__(self, key: str) -> float:
        raise RuntimeError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(["a"])

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize("values", [{Wordless(): 1.0}, Unreadable()])
def test_what_cannot_even_be_read_is_left_out_and_the_training_goes_on(
    values: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train(values, {"x": 1.0}, {"\ud800": 2.0})
    assert values_of(run) == {"x": [(2, 1.0)], "?": [(3, 2.0)]}
    assert "without one; it is left out" in capsys.readouterr().err
    assert run.steps == 3


def read_from(logged: Any) -> list[Any]:
    """What is logged, on the host."""
    from traindx.capture.transfer import Portion, TorchHost

    return Portion(logged.unread(fetch=True), TorchHost()).items()


def test_several_threads_may_log_while_the_training_is_written() -> None:
    from traindx.capture.logged import Logged

    logged, done = Logged(lambda text: pytest.fail(text)), threading.Event()
    noted = [0, 0]

    def note(i: int) -> None:
        while not done.is_set():
            logged.note(noted[i], {f"thread {i}": 1.0})
            noted[i] += 1

    threads = [threading.Thread(target=note, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    read = sum(len(read_from(logged)) for _ in range(300))
    done.set()
    for thread in threads:
        thread.join()
    assert read + len(read_from(logged)) == sum(noted)


def test_a_tensor_is_read_as_it_was_and_not_kept() -> None:
    value = torch.zeros(())
    kept = [value.clone() for _ in range(2)]
    net = nn.Linear(4, 1)
    with traindx.watch(net) as w:
        net(torch.ones(2, 4)).sum().backward()
        torch.optim.SGD(net.parameters(), lr=0.1).step()
        traindx.log(a=kept[0])
        kept[0] += 5
    assert values_of(w.run) == {"a": [(1, 0.0)]}


def test_a_number_on_a_device_waits_for_the_next_measured_step() -> None:
    from traindx.capture.logged import Logged

    logged = Logged(lambda text: pytest.fail(text))
    logged.note(3, {"a": 1.0})
    late = torch.tensor(2.0)
    logged._unread[3, "b"] = late  # pyright: ignore  (as one on a device is kept)
    assert logged.unread(fetch=False) == []
    assert [(s.step, s.site, s.value) for s in read_from(logged)] == [
        (3, Site("", "a"), 1.0),
        (3, Site("", "b"), 2.0),
    ]
    assert logged.unread(fetch=True) == []


def test_outside_a_run_nothing_happens_whatever_is_logged() -> None:
    traindx.log(x=object())
    traindx.log(5)  # pyright: ignore
    traindx.log()


def test_logging_costs_torch_nothing_where_nothing_is_recorded() -> None:
    code = (
        "import sys; before = set(sys.modules); from traindx import log; log(x=1.0);"
        "ours = {n for n in sys.modules if n.startswith('traindx.')};"
        "sys.exit('torch' in sys.modules or ours != {'traindx.recording'})"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_compiled_function_may_log() -> None:
    net = nn.Linear(4, 1)

    def step(x: Any) -> Any:
        y = net(x).sum()
        traindx.log(x=1.0)
        return y

    with traindx.watch(net, every=1):
        compiled = torch.compile(step, backend="eager", fullgraph=True)
        compiled(torch.ones(2, 4)).backward()
        torch.optim.SGD(net.parameters(), lr=0.1).step()


@pytest.mark.slow
def test_a_script_under_traindx_run_logs(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "from traindx import log\n"
        "log(early=1.0)\n"
        "import torch\n"
        "net = torch.nn.Linear(4, 1)\n"
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "for step in range(5):\n"
        "    net(torch.ones(2, 4)).sum().backward()\n"
        "    optimizer.step()\n"
        "    log(val_loss=step)\n"
    )
    for before in ([], ["-m", "traindx", "run"]):
        subprocess.run(
            [sys.executable, *before, "script.py"],
            check=True,
            cwd=tmp_path,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    (file,) = (tmp_path / "traindx-runs").iterdir()
    assert values_of(Run.load(file)) == {"val_loss": [(i + 1, float(i)) for i in range(5)]}
