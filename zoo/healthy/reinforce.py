"""REINFORCE on a cart that is pushed towards the middle of a track.

Expected: mean reward > 0.75 (per step, one in the middle; random pushes get about 0.35).
"""

import argparse

import torch
import torch.nn as nn
from torch.distributions import Categorical

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--gamma", type=float, default=0.9)
parser.add_argument("--episodes", type=int, default=60, help="batches of 32 episodes")
parser.add_argument("--hidden", type=int, default=32)
args = parser.parse_args()
torch.manual_seed(args.seed)

HORIZON = 20


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(2, args.hidden)
        self.affine2 = nn.Linear(args.hidden, 3)

    def forward(self, x):
        return Categorical(logits=self.affine2(torch.tanh(self.affine1(x))))


def step(state, action):
    """Position and velocity; action 0 pushes left, 2 right."""
    x, v = state.unbind(1)
    v = 0.8 * v + 0.2 * (action - 1)
    x = (x + v).clamp(-2, 2)
    return torch.stack([x, v], 1), torch.exp(-2 * x.square())


def rollout(policy, n=32):
    state = torch.stack([4 * torch.rand(n) - 2, torch.zeros(n)], 1)
    log_probs, rewards = [], []
    for _ in range(HORIZON):
        pi = policy(state)
        action = pi.sample()
        log_probs.append(pi.log_prob(action))
        state, reward = step(state, action)
        rewards.append(reward)
    return torch.stack(log_probs), torch.stack(rewards)


def discounted(rewards):
    returns, running = [], torch.zeros(rewards.shape[1])
    for r in rewards.flip(0):
        running = r + args.gamma * running
        returns.append(running)
    return torch.stack(returns).flip(0)


policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-2)
for episode in range(args.episodes):
    log_probs, rewards = rollout(policy)
    returns = discounted(rewards)
    advantage = returns - returns.mean(1, keepdim=True)
    advantage = advantage / (advantage.std() + 1e-6)
    policy_loss = -(log_probs * advantage).sum(0).mean()
    optimizer.zero_grad()
    policy_loss.backward()
    optimizer.step()
    if episode % 15 == 0:
        print(f"Episode {episode}\tAverage reward: {rewards.mean().item():.4f}")

with torch.no_grad():
    _, rewards = rollout(policy, 500)
print(f"mean reward: {rewards.mean().item():.4f}")
