"""When traindx itself fails inside a training: one warning, everything let go, training goes on."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.capture.test_taps import hooks_left, state_of_torch
from tests.capture.watched import batch, mlp, train, watched
from traindx.capture.collectors.activations import Activations
from traindx.capture.collectors.gradients import Gradients
from traindx.capture.collectors.norms import Norms
from traindx.capture.collectors.updates import Updates
from traindx.capture.graph import Graph
from traindx.capture.guard import give_back, make_room
from traindx.capture.recorder import Recorder
from traindx.records import EventKind

FAULTS = [
    (Activations, "output"),
    (Gradients, "after_backward"),
    (Gradients, "before_step"),
    (Updates, "before_step"),
    (Updates, "after_step"),
    (Norms, "before_backward"),
    (Norms, "round_starts"),
    (Norms, "round_ends"),
    (Recorder, "tensor"),
    (Recorder, "parts"),
    (Graph, "ways"),
]


@pytest.mark.parametrize(
    ("owner", "name"), FAULTS, ids=lambda part: getattr(part, "__name__", part)
)
def test_a_failure_of_ours_is_one_warning_and_the_training_goes_on(monkeypatch, owner, name):
    net = mlp()
    bare = train(net, steps=5)

    def fail(*_args: object, **_kwargs: object) -> None:
        raise LookupError("of ours")

    monkeypatch.setattr(owner, name, fail)
    before = state_of_torch()
    with watched(fails=True) as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        assert train(net, steps=5, optimizer=optimizer) == bare
        assert state_of_torch() == before
        assert not hooks_left(net, optimizer)
    (warning,) = recording.warnings
    assert warning.startswith("measuring stopped at step ")
    assert "LookupError('of ours') in fail, line" in warning
    assert warning.endswith("Your training goes on.")
    assert "measuring stopped" in recording.notes()
    assert recording.run.ended


def test_a_failure_inside_backward_does_not_reach_the_users_backward(monkeypatch):
    def fail(*_args: Any):
        raise LookupError("of ours")

    bare = train(mlp(), steps=3)
    monkeypatch.setattr(Recorder, "gradient", fail)
    with watched(fails=True) as recording:
        assert train(mlp(), steps=3) == bare
    assert len(recording.warnings) == 1


def test_what_was_measured_before_a_failure_is_kept(monkeypatch):
    real = Updates.after_step
    calls = []

    def fail_at_the_third(self: Updates, places: Any) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise LookupError("of ours")
        real(self, places)

    monkeypatch.setattr(Updates, "after_step", fail_at_the_third)
    with watched(fails=True) as recording:
        train(mlp(), steps=5)
    assert recording.series("grad.l2", "0.weight").steps.tolist() == [0, 1]
    (note,) = recording.run.events(EventKind.NOTE)
    assert note.step == 2


def test_a_sink_that_fails_is_a_failure_of_ours():
    with watched() as recording:
        recording_write = recording.write
        net = mlp()
        train(net, steps=2)

        def fail(items):
            raise OSError("no space left")

        recording.write = fail
        train(net, steps=2)
        recording.write = recording_write
        (warning,) = recording.warnings
        recording.warnings.clear()
    assert "no space left" in warning


def test_an_interrupt_is_not_swallowed(monkeypatch):
    def interrupt(*_args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Gradients, "after_backward", interrupt)
    with pytest.raises(KeyboardInterrupt), watched():
        train(mlp(), steps=1)


def train_in_thread(number: int, losses: dict[int, list[float]]) -> threading.Thread:
    """A thread that builds a model, trains it and notes its losses."""

    def work() -> None:
        held = [mlps[number]]
        optimizer = torch.optim.SGD(held[0].parameters(), lr=0.1)
        x, y = batch()
        for _ in range(40):
            optimizer.zero_grad()
            loss = F.cross_entropy(held[0](x), y)
            loss.backward()
            optimizer.step()
            losses.setdefault(number, []).append(loss.item())

    mlps = {number: mlp()}
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_of_two_threads_that_train_at_once_one_is_measured():
    bare = train(mlp(), steps=40)
    losses: dict[int, list[float]] = {}
    with watched() as recording:
        threads = [train_in_thread(number, losses) for number in range(4)]
        for thread in threads:
            thread.join()
    assert losses == dict.fromkeys(range(4), bare)
    assert recording.models
    assert len(recording.values("loss")) >= 40


def test_a_thread_that_goes_on_alone_is_measured_and_told_of():
    started, may_end = threading.Event(), threading.Event()

    def other() -> None:
        net = mlp()
        started.wait()
        net(batch()[0])
        may_end.set()

    thread = threading.Thread(target=other)
    with watched() as recording:
        thread.start()
        net = mlp()
        train(net, steps=2)
        started.set()
        may_end.wait()
        train(net, steps=2)
        thread.join()
    assert recording.run.steps == 4
    assert recording.models == {"net"}
    assert "another thread" in recording.notes()


def test_threads_that_train_one_after_another_are_all_measured():
    losses: dict[int, list[float]] = {}
    with watched() as recording:
        for number in range(2):
            train_in_thread(number, losses).join()
    assert recording.run.steps == 80
    assert len(recording.models) == 2


def test_the_limit_of_recursion_is_higher_for_a_while_and_then_as_before():
    before = sys.getrecursionlimit()
    outer = make_room()
    inner = make_room()
    assert sys.getrecursionlimit() > inner > outer == before
    give_back(inner)
    give_back(outer)
    assert sys.getrecursionlimit() == before


def test_a_high_limit_of_recursion_is_raised_by_what_a_stack_can_bear():
    before = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(15_000)
        limit = make_room()
        assert sys.getrecursionlimit() <= 16_100
        give_back(limit)
        assert sys.getrecursionlimit() == 15_000
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.parametrize("own", [5000, 2**31 - 1])
def test_a_limit_of_recursion_that_the_program_sets_meanwhile_stays(own):
    before = sys.getrecursionlimit()
    limit = make_room()
    try:
        sys.setrecursionlimit(own)
        inner = make_room()
        assert sys.getrecursionlimit() >= own
        give_back(inner)
        give_back(limit)
        assert sys.getrecursionlimit() == own
    finally:
        sys.setrecursionlimit(before)


def test_two_threads_do_not_raise_the_limit_of_recursion_at_once():
    before, others = sys.getrecursionlimit(), []
    limit = make_room()
    thread = threading.Thread(target=lambda: others.append(make_room()))
    thread.start()
    thread.join()
    give_back(0)
    assert others == [0]
    assert sys.getrecursionlimit() > before
    give_back(limit)
    assert sys.getrecursionlimit() == before
