"""When watching begins and ends: the training is the same, whoever watches and for how long."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import traindx
from tests.capture.matrix.training import Net, Training, batch, outcome, sgd
from tests.capture.watched import Recording, watched
from traindx.errors import UsageError


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 3))


def training(between: dict[str, object] | None = None) -> Training:
    """Eight steps; what `between` names is called at some moment of the fourth."""
    net = network()
    optimizer = torch.optim.AdamW(net.parameters())
    x, y = batch()

    def now(i: int, moment: str) -> None:
        if i == 3 and between and moment in between:
            between[moment]()  # pyright: ignore

    def step(i: int) -> object:
        now(i, "before the step")
        optimizer.zero_grad()
        out = net(x)
        now(i, "after forward")
        loss = F.mse_loss(out, y)
        loss.backward()
        now(i, "after backward")
        optimizer.step()
        return loss.detach()

    calls: list[int] = []

    def called(*_: object) -> None:
        calls.append(len(calls))
        now(calls[-1], "in forward")

    net[1].register_forward_hook(called)
    next(net.parameters()).register_hook(lambda _: now(calls[-1], "in backward"))
    return Training(step, (net, optimizer), steps=8)


MOMENTS = [
    "before the step", "in forward", "after forward", "in backward", "after backward",
]  # fmt: skip


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("trap_nan", [False, True], ids=["plain", "trap"])
def test_watching_may_end_at_any_moment(moment: str, trap_nan: bool):
    expected = outcome(training)
    with ExitStack() as stack:
        recording = stack.enter_context(watched(trap_nan=trap_nan))
        found = outcome(lambda: training({moment: stack.close}))
    assert found == expected
    assert recording.run.steps == 3


@pytest.mark.parametrize("moment", MOMENTS)
def test_watching_may_begin_at_any_moment(moment: str):
    expected = outcome(training)
    begun: list[Recording] = []
    with ExitStack() as stack:

        def begin() -> None:
            begun.append(stack.enter_context(watched()))

        found = outcome(lambda: training({moment: begin}))
    assert found == expected
    assert begun[0].run.steps >= 4


def test_two_watchers_see_the_same():
    expected = outcome(training)
    with watched() as first, watched(every=3) as second:
        found = outcome(training)
    assert found == expected
    assert first.run.steps == second.run.steps == 8
    assert first.values("loss")[::3] == second.values("loss")[::3]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["first", "last"])
def test_of_two_watchers_either_may_end_before_the_other(order: tuple[int, int]):
    expected = outcome(training)
    stacks = ExitStack(), ExitStack()
    recordings = [stack.enter_context(watched()) for stack in stacks]
    found = outcome(lambda: training({"before the step": stacks[order[0]].close}))
    stacks[order[1]].close()
    assert found == expected
    steps = [recording.run.steps for recording in recordings]
    assert [steps[i] for i in order] == [3, 8]


def test_a_watcher_closed_in_the_middle_changes_nothing(tmp_path: Path):
    def built(watch: bool) -> Training:
        net = Net()
        optimizer = sgd(net)
        x, y = batch()
        watcher = traindx.watch(net, optimizer, folder=tmp_path, every=1) if watch else None

        def step(i: int) -> object:
            optimizer.zero_grad()
            loss = F.mse_loss(net(x), y)
            if watcher is not None and i == 3:
                watcher.close()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return Training(step, (net, optimizer))

    assert outcome(lambda: built(True)) == outcome(lambda: built(False))


def test_a_second_watcher_that_is_refused_changes_nothing(tmp_path: Path):
    def built(watch: bool) -> Training:
        net = Net()
        optimizer = sgd(net)
        x, y = batch()
        watchers = [traindx.watch(net, folder=tmp_path, every=1)] if watch else []

        def step(i: int) -> object:
            optimizer.zero_grad()
            loss = F.mse_loss(net(x), y)
            if watch and i == 3:
                with pytest.raises(UsageError):
                    traindx.watch(net, folder=tmp_path)
            loss.backward()
            optimizer.step()
            if i == 5:
                seen.extend(watcher.close().steps for watcher in watchers)
            return loss.detach()

        return Training(step, (net, optimizer))

    seen: list[int] = []
    assert outcome(lambda: built(True)) == outcome(lambda: built(False))
    assert seen == [6]
