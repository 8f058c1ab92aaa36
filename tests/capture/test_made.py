"""Optimizers that never step, and those that replace another one."""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import nn

from tests.capture.watched import batch, mlp, watched


def step(optimizer, net):
    x, y = batch()
    optimizer.zero_grad()
    F.cross_entropy(net(x), y).backward()
    optimizer.step()


def test_an_optimizer_of_a_part_that_never_steps_is_seen_waiting():
    with watched() as recording:
        net = mlp(sizes=(6, 8, 8, 3))
        first = torch.optim.SGD(net[:2].parameters(), lr=0.1)
        rest = torch.optim.SGD(net[2:].parameters(), lr=0.1)
        for _ in range(3):
            step(first, net)
    assert recording.values("optimizer.waiting", "") == [1, 2, 3]
    assert rest.state == {}


def test_a_model_that_nothing_trains_waits_as_a_part_of_the_run():
    with watched() as recording:
        encoder, decoder = nn.Linear(6, 8), nn.Linear(8, 3)
        optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
        forgotten = torch.optim.SGD(decoder.parameters(), lr=0.1)
        for _ in range(3):
            step(optimizer, lambda x: decoder(encoder(x)))
    assert [(s.site, s.last) for s in recording.run.series("optimizer.waiting")] == [
        (("", "decoder"), 3.0)
    ]
    assert forgotten.state == {}


def test_it_waits_at_the_part_that_all_its_parameters_share():
    with watched() as recording:
        net = nn.Sequential(nn.Linear(6, 8), mlp(sizes=(8, 8, 3)))
        first = torch.optim.SGD(net[0].parameters(), lr=0.1)
        rest = torch.optim.SGD(net[1].parameters(), lr=0.1)
        for _ in range(3):
            step(first, net)
    assert recording.values("optimizer.waiting", "1") == [1, 2, 3]
    assert len(rest.param_groups) == 1


def test_an_optimizer_waits_no_more_once_it_steps():
    with watched() as recording:
        net = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 3))
        often = torch.optim.SGD(net[0].parameters(), lr=0.1)
        seldom = torch.optim.SGD(net[1].parameters(), lr=0.1)
        for turn in range(10):
            step(often, net)
            if turn % 5 == 4:
                seldom.step()
    assert recording.values("optimizer.waiting", "1") == [1, 2, 3, 4, 5]


def test_what_another_optimizer_trains_is_not_waiting():
    with watched() as recording:
        net = mlp()
        replaced = torch.optim.SGD(net.parameters(), lr=0.1)
        optimizer = torch.optim.Adam(net.parameters())
        for _ in range(3):
            step(optimizer, net)
    assert recording.sites("optimizer.waiting") == set()
    assert replaced.state == {}


def test_what_is_made_ahead_and_gets_no_gradient_is_not_waiting():
    with watched() as recording:
        net, later = mlp(), mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        ahead = torch.optim.SGD(later.parameters(), lr=0.1)
        for _ in range(3):
            later(batch()[0])
            step(optimizer, net)
    assert recording.sites("optimizer.waiting") == set()
    assert ahead.state == {}


def test_an_optimizer_made_at_each_step_replaces_the_one_before():
    with watched() as recording:
        net = mlp()
        for _ in range(5):
            step(torch.optim.Adam(net.parameters()), net)
    assert recording.values("optimizer.replaced", "") == [1, 2, 3, 4]
    assert recording.values("optimizer.life", "") == [1, 1, 1, 1]
    assert recording.series("optimizer.memory", "").last == torch.tensor(10.0)


def test_a_line_of_optimizers_stands_at_the_part_whose_parameters_they_have():
    with watched() as recording:
        net = mlp(sizes=(6, 8, 8, 3))
        first = torch.optim.SGD(net[:2].parameters(), lr=0.1)
        for _ in range(3):
            rest = torch.optim.Adam(net[4].parameters())
            step(first, net)
            rest.step()
    assert recording.sites("optimizer.replaced") == {"4"}


def test_plain_sgd_has_nothing_to_forget():
    with watched() as recording:
        net = mlp()
        for _ in range(3):
            step(torch.optim.SGD(net.parameters(), lr=0.1), net)
    assert recording.values("optimizer.memory", "") == [0, 0]


def test_the_optimizers_of_other_models_replace_none():
    with watched() as recording:
        net = mlp()
        for _ in range(5):
            fold = copy.deepcopy(net) if recording.items else mlp()
            step(torch.optim.Adam(fold.parameters()), fold)
            step(torch.optim.Adam([nn.Parameter(torch.zeros(3))]), fold)
            del fold
    assert recording.sites("optimizer.replaced") == set()


def test_phases_that_unfreeze_more_and_more_replace_none():
    with watched() as recording:
        net = mlp(sizes=(6, 8, 8, 3))
        for phase in range(3):
            optimizer = torch.optim.Adam(net[4 - 2 * phase :].parameters())
            for _ in range(3):
                step(optimizer, net)
    assert recording.sites("optimizer.replaced") == set()


def test_an_optimizer_is_made_as_before_afterwards():
    before = torch.optim.Optimizer.__init__
    with watched():
        assert torch.optim.Optimizer.__init__ is not before
    assert torch.optim.Optimizer.__init__ is before
