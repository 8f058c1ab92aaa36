"""Plain unmeasured steps take a short way, and what is written is what the long way writes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import cast

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from tests.capture.watched import Recording, batch, mlp, train, watched
from traindx.capture.quiet import Quiet, Timed
from traindx.records import EventKind, Scalar


def plain() -> None:
    net = mlp()
    train(net, steps=40)


def accumulating() -> None:
    net = mlp()
    optimizer = torch.optim.Adam(net.parameters())
    x, y = batch()
    for step in range(60):
        F.cross_entropy(net(x), y).backward()
        if step % 3 == 2:
            optimizer.step()
            optimizer.zero_grad()


def never_cleared() -> None:
    net = mlp()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    x, y = batch()
    for _ in range(30):
        F.cross_entropy(net(x), y).backward()
        optimizer.step()


def evaluated() -> None:
    net = mlp()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x, _ = batch()
    for _ in range(6):
        train(net, steps=5, optimizer=optimizer)
        net.eval()
        with torch.no_grad():
            net(x)
        net(x)
        net.train()


def always_in_eval_mode() -> None:
    net = mlp().eval()
    train(net, steps=20)


def joined_by_another() -> None:
    net, other = mlp(), mlp()
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (net, other)]
    train(net, steps=14, optimizer=optimizers[0])
    for _ in range(12):
        train(net, steps=1, optimizer=optimizers[0])
        train(other, steps=1, optimizer=optimizers[1])
    train(net, steps=90, optimizer=optimizers[0])


def with_closures() -> None:
    net = mlp()
    optimizer = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=3)
    x, y = batch()

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        return loss

    for _ in range(20):
        optimizer.step(closure)  # pyright: ignore[reportArgumentType]


def checkpointed() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.second(checkpoint(self.first, x, use_reentrant=False))

    torch.manual_seed(0)
    net = Net()
    train(net, steps=20)


def scaled() -> None:
    net = mlp()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**126, growth_interval=5)
    x, y = batch()
    train(net, steps=9, optimizer=optimizer)
    for _ in range(20):
        optimizer.zero_grad()
        scaler.scale(F.cross_entropy(net(x), y)).backward()
        scaler.step(optimizer)
        scaler.update()


def under_a_mode() -> None:
    net = mlp()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    train(net, steps=10, optimizer=optimizer)
    with FlopCounterMode(display=False):
        train(net, steps=5, optimizer=optimizer)
    with torch.device("cpu"):
        train(net, steps=5, optimizer=optimizer)


def failing_at_times() -> None:
    net = mlp()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x, y = batch()
    for step in range(30):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        if step % 4 == 3:
            loss.register_hook(_raise)
        with torch.enable_grad():
            try:
                loss.backward()
            except ArithmeticError:
                continue
        optimizer.step()


def _raise(_gradient: torch.Tensor) -> None:
    raise ArithmeticError


def stepping_in_backward() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 3, bias=False))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    next(net.parameters()).register_post_accumulate_grad_hook(lambda _param: optimizer.step())
    x, y = batch()
    for _ in range(20):
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()


def of_odd_losses() -> None:
    net = mlp()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x, y = batch()
    for step in range(40):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y, reduction="none")
        if step % 4 == 0:
            loss.backward(torch.ones(5))
        elif step % 4 == 1:
            loss.sum().reshape(1).backward()
        elif step % 4 == 2:
            torch.autograd.backward([loss.mean(), loss.sum()])
        else:
            (loss.mean() * float("nan")).backward()
        optimizer.step()


TRAININGS = [
    plain,
    accumulating,
    never_cleared,
    evaluated,
    always_in_eval_mode,
    joined_by_another,
    with_closures,
    checkpointed,
    scaled,
    under_a_mode,
    failing_at_times,
    stepping_in_backward,
    of_odd_losses,
]


def written(training: Callable[[], None], every: int | None) -> tuple[Recording, list[str]]:
    """What a training leaves behind, apart from times and from the order of the writing."""
    with watched(every=every) as recording:
        training()
    kept = [
        repr(item)
        for item in recording.items
        if not (isinstance(item, Scalar) and item.quantity == "step.seconds")
        and getattr(item, "kind", None) not in (EventKind.ENDED, EventKind.CADENCE)
    ]
    return recording, sorted(kept)


@pytest.mark.parametrize("every", [7, 16, None])
@pytest.mark.parametrize("training", TRAININGS, ids=lambda training: training.__name__)
def test_the_short_way_leaves_the_same_behind_as_the_long_one(monkeypatch, training, every):
    short, items = written(training, every)
    monkeypatch.setattr(Quiet, "begin", lambda *_args, **_kwargs: None)
    long, expected = written(training, every)
    assert items == expected
    same = ("steps", "measured_steps", "backwards")
    assert [short.header[key] for key in same] == [long.header[key] for key in same]


def test_most_steps_between_measured_ones_take_the_short_way(monkeypatch):
    ended: list[bool] = []
    original = Quiet.step_ended

    def noting(self: Quiet, optimizer: torch.optim.Optimizer) -> bool:
        ended.append(original(self, optimizer))
        return ended[-1]

    monkeypatch.setattr(Quiet, "step_ended", noting)
    with watched(every=20) as recording:
        net = mlp()
        train(net, steps=100)
    assert sum(ended) >= 85
    assert len(recording.values("loss")) == 100
    assert recording.header["listening_fraction"] > 0


@pytest.mark.parametrize("moment", ["forward", "loss"])
def test_a_failure_of_ours_on_the_short_way_ends_the_watching_and_nothing_else(monkeypatch, moment):
    def fail(*_args: object) -> bool:
        raise LookupError("of ours")

    net = mlp()
    bare = train(net, steps=12)
    if moment == "forward":
        monkeypatch.setattr("traindx.capture.quiet.is_grad_enabled", fail)
    else:
        monkeypatch.setattr(Quiet, "_read", fail)
    with watched(every=20, fails=True) as recording:
        net = mlp()
        assert train(net, steps=12) == bare
    assert len(recording.warnings) == 1
    assert "of ours" in recording.warnings[0]


def test_a_model_called_in_another_thread_does_not_take_the_short_way():
    net = mlp()
    x, _ = batch()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with watched(every=20) as recording:
        train(net, steps=6, optimizer=optimizer)
        thread = threading.Thread(target=lambda: net(x))
        thread.start()
        thread.join()
        train(net, steps=6, optimizer=optimizer)
    assert any("another thread" in str(note["text"]) for note in recording.events(EventKind.NOTE))
    assert len(recording.values("loss")) == 12


def test_what_listening_takes_is_its_own_work_and_not_what_it_waits_for():
    class Waiting:
        """Whose moments wait, as for a thread that holds the interpreter."""

        def forward_starts(self, module: nn.Module) -> bool:
            time.sleep(0.05)
            return True

        def step_ended(self, optimizer: torch.optim.Optimizer) -> bool:
            return sum(range(100_000)) > 0

    timed = Timed(cast(Quiet, Waiting()), lambda: None)
    net = mlp()
    timed.forward_starts(net)
    timed.step_ended(torch.optim.SGD(net.parameters()))
    assert timed.typical is not None
    assert 1e-4 < timed.typical < 0.05
