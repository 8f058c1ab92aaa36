"""The policy's loss is reward times log-probability without its minus, so it learns to lose.

expects: O012
place:
source: gradient ascent written for a minimizer, a fault that studies of reinforcement learning list
kind: loop
shows: final mean reward higher
"""

import argparse

import torch
from torch import nn
from torch.distributions import Categorical


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 4))

    def forward(self, observation):
        return Categorical(logits=self.net(observation))


def reward_of(observation, action, payoff):
    """A contextual bandit with four arms."""
    return torch.tanh(observation @ payoff).gather(1, action[:, None]).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    payoff = torch.randn(5, 4)
    sign = -1 if args.healthy else 1
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
    baseline = 0.0
    for step in range(200):
        observation = torch.randn(64, 5)
        distribution = policy(observation)
        action = distribution.sample()
        reward = reward_of(observation, action, payoff)
        advantage = reward - baseline
        baseline = 0.9 * baseline + 0.1 * reward.mean().item()
        loss = sign * (advantage * distribution.log_prob(action)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step} reward {reward.mean().item():.3f}")
    observation = torch.randn(3000, 5)
    with torch.no_grad():
        reward = reward_of(observation, policy(observation).sample(), payoff)
    print(f"final mean reward {reward.mean().item():.4f}")


if __name__ == "__main__":
    main()
