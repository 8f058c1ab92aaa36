"""Which thread is watched, told apart by more than the number that the system gives it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import ClassVar

import pytest
import torch
import torch.nn.functional as F

from tests.capture.watched import batch, mlp, train, watched
from traindx.capture.models import TrackedModel
from traindx.capture.threads import TrainingThread, this_thread


def in_a_thread(work: Callable[[], object]) -> object:
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


def test_a_thread_is_not_taken_for_a_dead_one_whose_number_it_got() -> None:
    seen = [in_a_thread(lambda: (threading.get_ident(), this_thread())) for _ in range(8)]
    tokens = [token for _, token in seen]  # pyright: ignore[reportGeneralTypeIssues]
    assert len(set(map(id, tokens))) == len(tokens)


def test_the_training_of_a_dead_thread_is_taken_over_by_one_only() -> None:
    training = TrainingThread(lambda _text: None)
    assert in_a_thread(training.claim)
    assert training.claim()
    assert not any(in_a_thread(training.may_be_this) for _ in range(8))
    assert training.may_be_this()


def test_gradients_of_the_only_model_are_not_read_while_another_thread_trains_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[object] = []
    original = TrackedModel.trainable

    def noting(self: TrackedModel) -> object:
        looked_at.append(self.root)
        return original(self)

    monkeypatch.setattr(TrackedModel, "trainable", noting)
    others = mlp()
    called, may_train = threading.Event(), threading.Event()

    def train_elsewhere() -> None:
        x, y = batch()
        loss = F.cross_entropy(others(x), y)
        called.set()
        may_train.wait()
        loss.backward()

    with watched(every=1) as recording:
        thread = threading.Thread(target=train_elsewhere)
        thread.start()
        called.wait()
        own = torch.ones(3, requires_grad=True)
        optimizer = torch.optim.SGD([own], lr=0.1)
        looked_at.clear()
        for _ in range(3):
            optimizer.zero_grad()
            own.square().sum().backward()
            optimizer.step()
        seen = [*looked_at]
        may_train.set()
        thread.join()
    assert {series.site.model for series in recording.run.series("grad.l2")} == {"parameters"}
    assert others not in seen


class Noting(torch.nn.Parameter):
    """A parameter that notes the threads in which its gradient is asked for."""

    asked: ClassVar[set[int]] = set()

    @property
    def grad(self) -> torch.Tensor | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self.asked.add(threading.get_ident())
        return torch.Tensor.grad.__get__(self)  # pyright: ignore

    @grad.setter
    def grad(self, value: torch.Tensor | None) -> None:
        torch.Tensor.grad.__set__(self, value)  # pyright: ignore


def test_gradients_of_an_optimizer_of_another_thread_are_not_read() -> None:
    """That one may be freeing them in its backward pass, in which it holds no interpreter."""
    Noting.asked.clear()
    made, may_end = threading.Event(), threading.Event()

    def hold_an_optimizer() -> None:
        layer = torch.nn.Linear(12, 4)
        layer.weight = Noting(layer.weight.detach())
        layer(torch.ones(2, 12)).sum().backward()
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        made.set()
        may_end.wait()
        optimizer.step()

    with watched(every=1):
        thread = threading.Thread(target=hold_an_optimizer)
        net = mlp()
        train(net, steps=1)
        thread.start()
        made.wait()
        train(net, steps=3)
        may_end.set()
        thread.join()
    assert threading.get_ident() not in Noting.asked


def noting_net() -> torch.nn.Module:
    """A model whose first weight notes who asks for its gradient."""
    net = mlp()
    net[0].weight = Noting(net[0].weight.detach())
    return net


def of_a_module() -> tuple[list[torch.nn.Parameter], Callable[[], torch.Tensor]]:
    """Parameters to train, and their loss."""
    net = noting_net()
    x, y = batch()
    return [*net.parameters()], lambda: F.cross_entropy(net(x), y)


def of_no_module() -> tuple[list[torch.nn.Parameter], Callable[[], torch.Tensor]]:
    """The same of a tensor that no module holds."""
    weight = Noting(torch.ones(3))
    return [weight], lambda: weight.square().sum()


@pytest.mark.parametrize("given", [of_a_module, of_no_module])
def test_gradients_of_what_was_given_to_another_thread_are_not_read(
    given: Callable[[], tuple[list[torch.nn.Parameter], Callable[[], torch.Tensor]]],
) -> None:
    differentiates, may_end = threading.Event(), threading.Event()

    with watched(every=1) as recording:
        params, loss = given()
        optimizer = torch.optim.SGD(params, lr=0.1)

        def step() -> None:
            optimizer.zero_grad()
            loss().backward()
            if threading.current_thread() is not threading.main_thread():
                differentiates.set()
                may_end.wait()
            optimizer.step()

        own = mlp()
        for _ in range(2):
            step()
            train(own, steps=1)
        thread = threading.Thread(target=step)
        thread.start()
        differentiates.wait()
        Noting.asked.clear()
        train(own, steps=3)
        asked = {*Noting.asked}
        may_end.set()
        thread.join()
    assert threading.get_ident() not in asked
    assert "own" in recording.models


def test_gradients_of_a_thread_that_still_trains_are_not_read_at_the_end() -> None:
    """Its step is half done, and a layer in a list has a gradient that nobody is to train."""
    differentiates, may_end = threading.Event(), threading.Event()

    def train_on() -> None:
        net = mlp()
        net.extra = [noting_net()]
        optimizers = [torch.optim.SGD(part.parameters(), lr=0.1) for part in (net[0], net[2])]
        x, y = batch()
        for step in range(3):
            F.cross_entropy(net(x) + net.extra[0](x), y).backward()
            for optimizer in optimizers[: 2 if step < 2 else 1]:
                optimizer.step()
        differentiates.set()
        may_end.wait()

    thread = threading.Thread(target=train_on)
    with watched(every=1) as recording:
        thread.start()
        differentiates.wait()
        Noting.asked.clear()
    asked = {*Noting.asked}
    may_end.set()
    thread.join()
    assert threading.get_ident() not in asked
    assert recording.run.steps >= 2
