"""With which sign a loss counts what it is made of."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import Bernoulli, Categorical, Normal

from tests.capture.watched import batch, mlp, watched
from traindx.capture.signs import rewarded, signs

SCORES = torch.linspace(-1, 1, 24).reshape(8, 3).requires_grad_()
TARGET = torch.arange(8) % 3
REWARD = torch.linspace(-1, 2, 8)


def cross_entropy() -> Tensor:
    return F.cross_entropy(SCORES * 2, TARGET)


@pytest.mark.parametrize(
    ("loss", "factors"),
    [
        (cross_entropy, [1]),
        (lambda: -cross_entropy(), [-1]),
        (lambda: 3 * cross_entropy() / -2, [-1.5]),
        (lambda: 1 - cross_entropy(), [-1]),
        (lambda: cross_entropy() - 0.5 * F.mse_loss(SCORES, torch.zeros(8, 3)), [1, -0.5]),
        (lambda: cross_entropy() + SCORES.square().sum(), [1]),
        (lambda: cross_entropy().exp(), []),
        (lambda: (SCORES.log_softmax(1).exp() * REWARD[:, None]).sum(), []),
    ],
    ids=["plain", "negated", "scaled", "subtracted", "two", "penalty", "curved", "unknown"],
)
def test_the_factor_of_a_known_loss_is_that_of_the_graph(
    loss: Callable[[], Tensor], factors: list[float]
):
    found = [float(factor) for factor in signs(loss()).losses]
    assert sorted(found) == pytest.approx(sorted(factors))


def drawn(distribution: Categorical | Normal | Bernoulli) -> Tensor:
    return distribution.log_prob(distribution.sample())


LIKELIHOODS: dict[str, Callable[[], Tensor]] = {
    "categorical": lambda: drawn(Categorical(logits=SCORES * 1)),
    "probabilities": lambda: drawn(Categorical(probs=SCORES.softmax(1))),
    "normal": lambda: drawn(Normal(SCORES[:, 0] * 1, 0.5 * torch.ones(8))),
    "bernoulli": lambda: drawn(Bernoulli(logits=SCORES[:, 0] * 1)),
    "cross-entropy": lambda: -F.cross_entropy(SCORES * 1, TARGET, reduction="none"),
    "indexed": lambda: SCORES.log_softmax(1)[torch.arange(8), TARGET],
}


@pytest.mark.parametrize("likelihood", LIKELIHOODS.values(), ids=LIKELIHOODS)
@pytest.mark.parametrize("sign", [-1, 1])
def test_a_reward_goes_with_the_factor_of_what_was_drawn(
    likelihood: Callable[[], Tensor], sign: int
):
    reward = REWARD
    loss = sign * ((reward - 0.3) * likelihood()).mean()
    (found,) = rewarded(signs(loss).likelihoods, inspect.currentframe())
    assert found.variable == "reward"
    assert float(found.correlation) == pytest.approx(sign)


def test_the_steps_of_an_episode_are_taken_together():
    returns = REWARD.tolist()
    parts = [
        -value * drawn(Categorical(logits=row))
        for value, row in zip(returns, SCORES * 1, strict=True)
    ]
    (found,) = rewarded(signs(torch.stack(parts).sum()).likelihoods, inspect.currentframe())
    assert float(found.correlation) == pytest.approx(-1)


def test_a_factor_that_is_the_negative_of_a_reward_is_right():
    advantage = REWARD
    loss = (drawn(Categorical(logits=SCORES * 1)) * -advantage).sum()
    (found,) = rewarded(signs(loss).likelihoods, inspect.currentframe())
    assert float(found.correlation) == pytest.approx(-1)


def test_variables_of_another_name_or_size_say_nothing():
    cost, reward_mean, old_reward, rewards = REWARD, REWARD, REWARD, REWARD[:3]
    loss = (cost * drawn(Categorical(logits=SCORES * 1))).mean()
    assert rewarded(signs(loss).likelihoods, inspect.currentframe()) == []
    assert (len(reward_mean), len(old_reward), len(rewards)) == (8, 8, 3)


def test_a_training_notes_its_factors_in_the_first_two_steps():
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(4):
            x, y = batch()
            optimizer.zero_grad()
            (-F.cross_entropy(net(x), y)).backward()
            optimizer.step()
    assert recording.values("loss.factor") == [-1, -1]
    assert recording.sites("loss.rewarded") == set()


def test_a_policy_notes_how_its_factor_goes_with_the_reward():
    torch.manual_seed(0)
    with watched() as recording:
        policy = nn.Linear(6, 3)
        optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
        for _ in range(2):
            distribution = Categorical(logits=policy(torch.randn(16, 6)))
            reward = torch.randn(16)
            loss = (distribution.log_prob(distribution.sample()) * reward).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert recording.values("loss.rewarded", "reward") == pytest.approx([1, 1])
