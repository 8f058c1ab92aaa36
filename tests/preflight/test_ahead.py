"""Parts trained in turn by one optimizer, told apart from a graph that is cut by mistake."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from tests.preflight.cases import codes, labelled, probed
from tests.preflight.test_finding import found
from traindx.preflight.ahead import Ahead, without_gradient
from traindx.preflight.case import Case
from traindx.preflight.finding import Finder

X, Y = labelled()


class Net(nn.Module):
    """An encoder, and a head on what it makes."""

    def __init__(self, *, cut: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.encoder, self.decoder = nn.Linear(20, 8), nn.Linear(8, 20)
        self.head = nn.Linear(8, 10)
        self.cut = cut

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = torch.relu(self.encoder(x))
        return self.head(hidden.detach() if self.cut else hidden), self.decoder(hidden)


def trained(net: Net, turns: Callable[[int], bool], done: list[int], steps: int = 20) -> None:
    """Trains the head and the autoencoder in turn, by one optimizer."""
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    for step in range(steps):
        scores, made = net(X)
        loss = F.cross_entropy(scores, Y) if turns(step) else F.mse_loss(made, X)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done.append(step)


def reached(case: Case) -> list[str]:
    return codes(probed(case, "parameters-reached"))


def test_parts_that_are_trained_in_turn_are_no_fault():
    done: list[int] = []
    case = found(lambda: trained(Net(cut=True), lambda step: step % 2 == 0, done))
    assert done == [0]
    assert reached(case) == []


def test_the_model_is_probed_as_it_was_at_its_first_step():
    net, untrained, done = Net(cut=True), Net(cut=True), list[int]()
    case = found(lambda: trained(net, lambda step: step % 5 != 4, done))
    assert len(done) == 4
    for param, before in zip(case.model.parameters(), untrained.parameters(), strict=True):
        assert torch.equal(param, before)
    assert case.optimizer is not None
    assert not case.optimizer.state
    assert {id(p) for p in net.parameters()} == case.graded


def test_a_graph_that_is_cut_for_good_is_reported():
    done: list[int] = []
    case = found(lambda: trained(Net(cut=True), lambda step: True, done))
    assert len(done) == 8
    assert reached(case) == ["S012"]


def test_a_training_whose_first_loss_reaches_everything_is_stopped_there():
    net, done = Net(), list[int]()

    def train() -> None:
        optimizer = torch.optim.Adam(net.parameters())
        scores, made = net(X)
        (F.cross_entropy(scores, Y) + F.mse_loss(made, X)).backward()
        optimizer.step()
        done.append(0)

    found(train)
    assert not done


def test_two_backward_passes_before_one_step_are_both_seen():
    net = Net(cut=True)

    def train() -> None:
        optimizer = torch.optim.Adam(net.parameters())
        scores, made = net(X)
        F.mse_loss(made, X).backward()
        F.cross_entropy(scores, Y).backward()
        optimizer.step()

    assert reached(found(train)) == []


def test_a_training_that_ends_before_is_probed_at_its_end():
    net, cases = Net(cut=True), list[Case]()
    finder = Finder(cases.append)
    finder.arm()
    try:
        trained(net, lambda step: True, [], steps=3)
        assert not cases
        finder.ended()
    finally:
        finder.disarm()
    assert reached(cases[0]) == ["S012"]


def test_it_is_not_waited_for_long():
    net, now = Net(cut=True), [0.0]
    case = found(lambda: trained(net, lambda step: True, [], steps=9))
    ahead = Ahead(case, without_gradient(case), clock=lambda: now[0])
    assert not ahead.is_enough()
    now[0] = 11.0
    assert ahead.is_enough()
