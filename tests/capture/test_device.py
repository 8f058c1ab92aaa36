"""A training on a device: nobody waits for it, and what is recorded is what the CPU would give."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest
import torch
from torch import nn

from tests.capture.devices import PretendedHost, pretended_device, reads
from tests.capture.trainings import STEPS, TRAININGS
from tests.capture.watched import Recording, batch, mlp, train, watched
from traindx.capture.capture import Capture
from traindx.records import Event, EventKind, Item, Record, Scalar, Site, Vector
from traindx.stats import native


@contextmanager
def on_device(
    host: PretendedHost, *, every: int | None = 1, fails: bool = False
) -> Iterator[Recording]:
    """Watch what happens inside, on a pretended device that nothing of traindx reads."""
    recording = Recording()
    capture = Capture([recording], every=every, warn=recording.warnings.append, host=host)
    with pretended_device() as found:
        capture.arm()
        try:
            yield recording
        finally:
            capture.close(0)
    assert found == []
    assert bool(recording.warnings) == fails, recording.warnings


def test_the_watch_on_reading_sees_traindx_and_nobody_else():
    with reads() as found:
        train(mlp(), steps=2)
        assert found == []
        with watched():
            train(mlp(), steps=2)
    assert any("item in capture/losses.py" in place for place in found)


@pytest.mark.parametrize("name", TRAININGS)
def test_no_training_waits_for_its_device(name: str):
    with on_device(host := PretendedHost()) as recording:
        TRAININGS[name]("cpu")
    # One copy a measured step, and one at the end for what came after the last.
    assert len(host.copies) in (recording.run.steps, recording.run.steps + 1)


def numbers(item: Item) -> tuple[object, list[float]]:
    """What an item is, and the numbers in it; of what is counted or timed none."""
    match item:
        case Record(step, site, point, stats):
            values = [stats.mean, stats.m2, stats.min, stats.max, float(stats.zeros)]
            return (step, site, point, stats.count, stats.sampled), values
        case Scalar(step, quantity, value, site):
            return (step, quantity, site), [value] if quantity != "step.seconds" else []
        case Vector(step, quantity, site, values):
            return (step, quantity, site), [*values]
        case Event(step, kind, site, detail):
            return (step, kind, site, None if kind is EventKind.ENDED else str(detail)), []
        case _:
            return item, []


@pytest.mark.parametrize("name", sorted(TRAININGS.keys() - {"fused", "sigmoids", "sparse"}))
def test_what_is_recorded_does_not_depend_on_where(name: str, monkeypatch: pytest.MonkeyPatch):
    """But for zeros: on the host, a compiled pass counts all of them and not those of a sample."""
    monkeypatch.setattr(native, "FUNCTIONS", {})
    with watched() as here:
        TRAININGS[name]("cpu")
    with on_device(PretendedHost()) as there:
        TRAININGS[name]("cpu")
    # Parameters of one device may be measured together, so their order within a step is free.
    expected, found = (
        sorted(map(numbers, recording.items), key=lambda pair: repr(pair[0]))
        for recording in (here, there)
    )
    for (what, values), (same, others) in zip(expected, found, strict=True):
        assert what == same
        assert others == pytest.approx(values, rel=1e-4, abs=1e-6, nan_ok=True), what


def test_norms_of_a_sigmoid_chain_arrive_with_its_numbers():
    with watched() as here:
        TRAININGS["sigmoids"]("cpu")
    with on_device(PretendedHost()) as there:
        TRAININGS["sigmoids"]("cpu")
    bounds = [
        {it.fqn: it.path.log10_bound or 0.0 for it in recording.model().params if it.path}
        for recording in (here, there)
    ]
    assert bounds[0]["0.weight"] < -2
    assert bounds[1] == pytest.approx(bounds[0], rel=1e-5)


def test_an_idle_step_of_a_fused_optimizer_is_told_later_and_counts():
    with on_device(PretendedHost()) as recording:
        TRAININGS["fused"]("cpu")
    (event,) = recording.run.events(EventKind.AMP_SKIPPED)
    assert (event.step, event.detail) == (2, {"optimizer": "Adam"})
    assert recording.run.steps == STEPS


def steps_of(items: list[Item]) -> list[int]:
    """The step of every item but the losses, which are told of steps long gone."""
    told = [item for item in items if not (isinstance(item, Scalar) and item.quantity == "loss")]
    return [item.step for item in told]


@pytest.mark.parametrize("arrives", [False, True])
def test_a_step_is_written_whole_and_before_the_next(arrives: bool):
    host = PretendedHost(arrives=arrives)
    with on_device(host) as recording:
        train(mlp(), steps=5)
        waiting = 0 if arrives else 1
        assert recording.run.step == 4 - waiting
    steps = steps_of(recording.items)
    assert steps == sorted(steps)
    measured = [item.step for item in recording.items if isinstance(item, Event)]
    assert [step for step in measured if step < 5] == [0, 1, 2, 3, 4]


def test_what_is_written_is_at_most_a_measured_step_behind():
    behind: list[int] = []
    with on_device(PretendedHost()) as recording:
        net, (x, y) = mlp(), batch()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(6):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
            behind.append(step - recording.run.step)
    assert behind == [1] * 6
    assert recording.run.step == 5


def test_losses_between_measured_steps_are_fetched_now_and_then(monkeypatch: pytest.MonkeyPatch):
    seconds = iter(range(10**6))
    monkeypatch.setattr("traindx.capture.journal._PATIENCE", 1e9)
    host, recording = PretendedHost(arrives=True), Recording()
    capture = Capture(
        [recording],
        every=64,
        warn=recording.warnings.append,
        host=host,
        clock=lambda: float(next(seconds)),
    )
    with pretended_device() as found:
        capture.arm()
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        train(net, steps=20, optimizer=optimizer)
        assert len(host.copies) == 1  # of the measured step
        monkeypatch.setattr("traindx.capture.journal._PATIENCE", 0.0)
        capture._quiet.leave()
        train(net, steps=3, optimizer=optimizer)
        assert 2 <= len(host.copies) <= 4
        assert recording.run.step >= 20
        capture.close(0)
    assert (found, recording.warnings) == ([], [])
    assert len(recording.series("loss")) == 23


def test_what_the_program_logs_is_fetched_with_the_step():
    host, recording = PretendedHost(), Recording()
    capture = Capture([recording], every=1, warn=recording.warnings.append, host=host)
    with pretended_device() as found:
        capture.arm()
        for value in (0.25, 0.5):
            capture.log({"accuracy": torch.tensor(value)})
            train(mlp(), steps=1)
        capture.close(0)
    assert (found, recording.warnings) == ([], [])
    assert recording.values("logged", "accuracy") == [0.25, 0.5]
    assert len(host.copies) == 3  # two steps, and the first layer's weights at the end


def test_a_device_that_fails_costs_the_numbers_on_it_and_nothing_else():
    host = PretendedHost()
    with on_device(host) as recording:
        train(mlp(), steps=3)
        host.fails = True
    assert recording.run.step == 2
    assert len(recording.series("loss")) == 2
    assert recording.header["exit_code"] == 0
    assert "device-side assert" in recording.notes()


def test_a_device_that_fails_in_training_ends_the_watch_with_a_warning():
    host = PretendedHost()
    with on_device(host, fails=True) as recording:
        net = mlp()
        train(net, steps=3)
        host.fails = True
        assert len(train(net, steps=3)) == 3
    (warning,) = recording.warnings
    assert "device-side assert" in warning
    assert recording.header["steps"] == 3


def test_nothing_is_done_on_a_device_whose_stream_is_being_captured():
    host = PretendedHost(graph=True)
    with on_device(host) as recording:
        train(mlp(), steps=3)
        host.graph = False
        train(mlp(), steps=2)
    assert recording.notes().count("CUDA graph") == 1
    assert recording.run.steps == 2
    assert len(recording.series("loss")) == 2


def test_a_part_that_is_captured_in_the_midst_of_a_forward_pass_is_passed_over():
    host = PretendedHost()

    class Captured(nn.Module):
        """The CPU has most of it."""

        def __init__(self) -> None:
            super().__init__()
            self.part, self.last = nn.Linear(2, 2, device="meta"), nn.Linear(6, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            host.graph = True
            self.part(torch.ones(1, 2, device="meta"))
            host.graph = False
            return self.last(x)

    with on_device(host) as recording:
        train(Captured(), steps=3)
    assert recording.notes().count("CUDA graph") == 1
    calls = {module.fqn: module.calls for module in recording.model().modules}
    assert calls == {"": 1, "part": 0, "last": 1}
    assert recording.run.steps == 3


def test_on_the_cpu_nothing_waits():
    with watched() as recording:
        net, (x, y) = mlp(), batch()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(3):
            nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
            assert recording.run.step == step


def test_scaled_gradients_are_divided_on_the_host():
    with on_device(PretendedHost()) as recording:
        TRAININGS["scaled"]("cpu")
    loss = recording.values("loss")
    assert all(0 < value < 10 for value in loss if math.isfinite(value))
    assert all(a != b for a, b in pairwise(loss))
    assert Site(next(iter(recording.models)), "0.weight") in {
        series.site for series in recording.run.series("grad.mean")
    }
