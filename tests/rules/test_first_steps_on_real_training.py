"""O001, G002 and L002 on real training: faults as users write them, and what comes close to them.

No circumstance that a trainer chooses on purpose may fire them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import traindx
from tests.rules.test_on_real_training import problem
from traindx.findings import Finding

Loss = Callable[[Tensor, Tensor], Tensor]
Watched = Callable[..., list[Finding]]


@pytest.fixture
def found(tmp_path: Path) -> Watched:
    """Trains a net watched; gives what was found by the three rules, active or not."""

    def train(
        make: Callable[[], nn.Module],
        optimizer: Callable[[nn.Module], torch.optim.Optimizer],
        loss: Loss = F.cross_entropy,
        *,
        steps: int = 60,
        clip: float = math.inf,
        lr_of: Callable[[int], float] | None = None,
    ) -> list[Finding]:
        torch.manual_seed(0)
        inputs, labels = problem()
        with traindx.watch(name="training", folder=tmp_path) as session:
            net = make()
            stepper = optimizer(net)
            for step in range(steps):
                picked = torch.arange(step * 64, step * 64 + 64) % len(inputs)
                for group in stepper.param_groups:
                    group["lr"] = lr_of(step) if lr_of else group["lr"]
                stepper.zero_grad()
                loss(net(inputs[picked]), labels[picked]).backward()
                nn.utils.clip_grad_norm_(net.parameters(), clip)
                stepper.step()
        verdict = session.run.verdict
        assert verdict is not None
        assert {"G002", "L002", "O001"} <= {*verdict.evaluated}
        return [it for it in verdict.findings if it.code in ("O001", "G002", "L002")]

    return train


def net(width: int = 64, depth: int = 4, std: float | None = None) -> nn.Sequential:
    layers: list[nn.Module] = []
    for i in range(depth):
        linear = nn.Linear(20 if i == 0 else width, width)
        if std is not None:
            nn.init.normal_(linear.weight, std=std)
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 3))


def sgd(lr: float, momentum: float = 0.0) -> Callable[[nn.Module], torch.optim.Optimizer]:
    return lambda model: torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)


def adam(lr: float) -> Callable[[nn.Module], torch.optim.Optimizer]:
    return lambda model: torch.optim.AdamW(model.parameters(), lr=lr)


def codes(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings if finding.active]


@pytest.mark.parametrize("optimizer", [sgd(100.0), adam(0.3)], ids=["SGD", "AdamW"])
def test_a_rate_that_is_far_too_high_fires_o001_first(found: Watched, optimizer):
    assert codes(found(net, optimizer))[0] == "O001"


@pytest.mark.parametrize("optimizer", [sgd(100.0), adam(0.3)], ids=["SGD", "AdamW"])
def test_the_rate_that_o001_proposes_trains_in_silence(found: Watched, optimizer):
    (first, *_) = found(net, optimizer)
    proposed = first.evidence.numbers["proposed_lr"]
    assert found(net, optimizer, lr_of=lambda _step: proposed) == []


@pytest.mark.parametrize(
    ("make", "optimizer"),
    [
        (net, sgd(0.1, momentum=0.9)),
        (net, adam(3e-3)),
        (lambda: net(width=1024), adam(3e-3)),
        (lambda: net(std=1e-4), adam(3e-3)),
        (lambda: nn.Sequential(net(), nn.LayerNorm(3)), adam(1e-2)),
    ],
    ids=["momentum", "AdamW", "wide layers", "tiny start", "normalized"],
)
def test_ordinary_rates_are_silent(found: Watched, make, optimizer):
    assert found(make, optimizer) == []


def test_a_head_that_starts_at_zero_is_silent(found: Watched):
    def make() -> nn.Sequential:
        head = nn.Linear(64, 3)
        nn.init.zeros_(head.weight)
        return nn.Sequential(*list(net().children())[:-1], head)

    assert found(make, adam(3e-3)) == []


def test_a_warmup_up_to_a_rate_that_the_net_stands_is_silent(found: Watched):
    assert found(net, sgd(0.0), lr_of=lambda step: min(0.02 * (step + 1), 0.4)) == []


def test_weights_that_are_far_too_large_fire_g002_and_not_o001(found: Watched):
    assert codes(found(lambda: net(depth=10, std=0.4), sgd(0.02))) == ["G002"]


def test_weights_of_the_proper_size_are_silent(found: Watched):
    assert found(lambda: net(depth=10, std=math.sqrt(2 / 64)), sgd(0.02)) == []


def test_large_weights_under_an_optimizer_that_normalizes_are_silent(found: Watched):
    assert found(lambda: net(depth=10, std=0.3), adam(1e-3)) == []


def test_clipped_explosions_are_silent(found: Watched):
    assert found(lambda: net(depth=10, std=0.3), sgd(0.02), clip=0.5) == []


# -- L002 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "loss",
    [
        lambda scores, labels: F.cross_entropy(scores.softmax(1), labels),
        lambda scores, labels: F.cross_entropy(scores.softmax(1), labels, label_smoothing=0.1),
        lambda scores, labels: F.cross_entropy(scores.softmax(1), labels, weight=torch.rand(3)) / 4,
        lambda scores, labels: F.nll_loss(scores.softmax(1), labels),
    ],
    ids=["cross-entropy", "label smoothing", "class weights, divided", "likelihood"],
)
def test_a_softmax_too_many_fires_l002(found: Watched, loss: Loss):
    assert codes(found(net, sgd(0.05), loss)) == ["L002"]


@pytest.mark.parametrize(
    "loss",
    [
        lambda scores, labels: F.cross_entropy(scores.log_softmax(1), labels),
        lambda scores, labels: F.nll_loss(scores.log_softmax(1), labels),
        lambda scores, labels: F.nll_loss(scores.softmax(1).log(), labels),
        lambda scores, labels: F.cross_entropy(scores, labels, label_smoothing=0.1),
        lambda scores, labels: F.cross_entropy(F.normalize(scores) / 0.1, labels),
    ],
    ids=["log-softmax twice", "likelihood", "logarithm", "label smoothing", "cosine"],
)
def test_proper_losses_are_silent(found: Watched, loss: Loss):
    assert found(net, sgd(0.05), loss) == []
