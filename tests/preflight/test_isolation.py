"""A probe leaves no trace, whatever it does."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from tests.preflight.cases import case_of, classifier, labelled
from traindx.preflight.case import Case
from traindx.preflight.isolation import State, digest_of, isolated


def trained() -> Case:
    """A case in the middle of its training: gradients, optimizer state, running statistics."""
    model = classifier(nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout())
    optimizer = torch.optim.Adam(model.parameters())
    batch = labelled()
    for _ in range(2):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch[0]), batch[1]).backward()
        optimizer.step()
    return case_of(model, batch, nn.CrossEntropyLoss(), optimizer)


def trains(case: Case) -> None:
    optimizer = torch.optim.SGD(case.model.parameters(), lr=1.0)
    case.loss().backward()
    optimizer.step()


def steps_its_own(case: Case) -> None:
    assert case.optimizer is not None
    case.loss().backward()
    case.optimizer.step()
    case.optimizer.param_groups[0]["lr"] = 7.0
    case.optimizer.zero_grad()


def converts(case: Case) -> None:
    case.model.double()
    case.model.eval()
    for param in case.model.parameters():
        param.requires_grad_(False)


def draws(_case: Case) -> None:
    torch.randn(3)
    random.random()
    np.random.rand(2)


def changes_the_batch(case: Case) -> None:
    case.args[0].zero_()
    case.targets[0].zero_()


def hooks(case: Case) -> None:
    case.model.register_forward_hook(lambda *_: None)
    case.model.cache = torch.ones(3)  # pyright: ignore
    case.model[0] = nn.Linear(20, 32)  # pyright: ignore


def works_past_versions(case: Case) -> None:
    next(case.model.parameters()).data.fill_(1.0)


DOINGS = [trains, steps_its_own, converts, draws, changes_the_batch, hooks, works_past_versions]


@pytest.mark.parametrize("do", DOINGS)
def test_everything_is_put_back_bit_for_bit(do: Callable[[Case], None]) -> None:
    case = trained()
    case.model[0].requires_grad_(False)  # pyright: ignore
    grads = [param.grad for param in case.model.parameters()]
    before = {**case.model.state_dict()}
    before = {name: tensor.clone() for name, tensor in before.items()}
    state = State(case)
    digest, drawn = state.digest, random.getstate()
    state.begin()
    do(case)
    assert state.restore() == []
    assert State(case).digest == digest
    assert random.getstate() == drawn
    after = case.model.state_dict()
    assert list(after) == list(before)
    assert all(torch.equal(after[name], before[name]) for name in before)
    assert all(p.grad is g for p, g in zip(case.model.parameters(), grads, strict=True))
    assert case.optimizer is not None
    assert case.optimizer.param_groups[0]["lr"] == 1e-3


def test_training_goes_on_as_if_nothing_had_been_probed() -> None:
    losses: list[list[float]] = []
    for probing in (False, True):
        case = trained()
        if probing:
            with isolated(case):
                steps_its_own(case)
                draws(case)
        losses.append([])
        assert case.optimizer is not None
        for _ in range(5):
            case.optimizer.zero_grad()
            loss = case.loss()
            loss.backward()
            case.optimizer.step()
            losses[-1].append(loss.item())
    assert losses[0] == losses[1]


def test_a_difference_that_stays_is_named() -> None:
    case = trained()
    state = State(case)
    with torch.no_grad():
        next(case.model.parameters()).mul_(2)
    assert state.differences() == ["0.weight"]
    state.restore()
    assert state.differences() == []


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.complex64])
def test_a_digest_tells_every_bit(dtype: torch.dtype) -> None:
    tensor = torch.zeros(5, 3).to(dtype)
    other = tensor.clone()
    assert digest_of(tensor) == digest_of(other)
    assert digest_of(tensor.t()) != digest_of(tensor)
    other[4, 2] = 1
    assert digest_of(other) != digest_of(tensor)


def test_zeros_of_both_signs_differ() -> None:
    assert digest_of(torch.tensor([0.0])) != digest_of(torch.tensor([-0.0]))
