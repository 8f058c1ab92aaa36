"""Loops, optimizers and clipping on real training: faults as users write them, and near misses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import traindx

CODES = {"G009", "G010", "O005", "O014", "O015", "O016", "S004"}
Make = Callable[[nn.Module], torch.optim.Optimizer]
Found = Callable[..., dict[str, str]]


def sgd(*, lr: float = 0.1, decay: float = 0.0, momentum: float = 0.0) -> Make:
    return lambda net: torch.optim.SGD(
        net.parameters(), lr=lr, weight_decay=decay, momentum=momentum
    )


def adam(*, lr: float = 1e-3, decay: float = 0.0) -> Make:
    return lambda net: torch.optim.Adam(net.parameters(), lr=lr, weight_decay=decay)


def batches(steps: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    torch.manual_seed(1)
    rule = torch.randn(20, 5)
    for _ in range(steps):
        x = torch.randn(64, 20)
        yield x, (x @ rule).argmax(1)


@pytest.fixture
def found(tmp_path: Path) -> Found:
    """Trains a network watched; the sites of what was found of these rules, by code."""

    def train(
        make: Make,
        *,
        clip: float = 0.0,
        late: bool = False,
        anew: int = 1000,
        decay: float = 1.0,
        every: int | None = None,
    ) -> dict[str, str]:
        torch.manual_seed(0)
        with traindx.watch(name="training", folder=tmp_path, every=every) as session:
            net = nn.Sequential(
                nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 5)
            )
            optimizer = make(net)
            for step, (x, y) in enumerate(batches(150)):
                if step % anew == anew - 1:
                    optimizer = make(net)
                optimizer.zero_grad()
                F.cross_entropy(net(x), y).backward()
                if clip and not late:
                    nn.utils.clip_grad_norm_(net.parameters(), clip)
                optimizer.step()
                if clip and late:
                    nn.utils.clip_grad_norm_(net.parameters(), clip)
                for group in optimizer.param_groups:
                    group["lr"] *= decay
        verdict = session.run.verdict
        assert verdict is not None
        return {it.code: str(it.evidence.site) for it in verdict.findings if it.code in CODES}

    return train


@pytest.mark.parametrize("make", [sgd(decay=1.0), adam(lr=1e-2, decay=1.0)], ids=["sgd", "adam"])
def test_a_decay_that_drowns_the_gradient_is_found(found: Found, make: Make):
    assert [*found(make)] == ["O016"]


def test_clipping_to_next_to_nothing_is_found(found: Found):
    assert found(sgd(), clip=1e-4) == {"G009": "SGD"}


@pytest.mark.parametrize("every", [1, 16])
def test_clipping_after_the_step_is_found(found: Found, every: int):
    assert found(sgd(), clip=1.0, late=True, every=every) == {"G010": "SGD"}


def test_an_optimizer_that_is_made_at_each_step_is_found(found: Found):
    assert found(adam(), anew=1) == {"O015": "net"}


def test_a_rate_that_is_gone_after_a_seventh_of_the_steps_is_found(found: Found):
    assert found(sgd(), decay=0.8, every=8) == {"O005": "SGD"}


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (sgd(momentum=0.9, decay=5e-4), {"clip": 1.0}),
        (adam(), {"clip": 1e-3}),
        (adam(), {"anew": 30}),
        (sgd(), {"anew": 1}),
        (sgd(), {"decay": 0.97}),
    ],
    ids=["as-usual", "adam-clipped", "restarts", "plain-sgd-anew", "slow-decay"],
)
def test_what_comes_near_is_none(found: Found, make: Make, options: dict[str, float]):
    assert found(make, **options) == {}
