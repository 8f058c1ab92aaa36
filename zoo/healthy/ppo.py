"""Proximal policy optimization on a point that should stay near a moving target.

Several epochs over each batch of experience, generalized advantages, a clipped objective.

Expected: mean reward > 0.60 (per step, one on the target; doing nothing gets about 0.35).
"""

import argparse

import torch
import torch.nn as nn
from torch.distributions import Normal

HORIZON, ENVS = 32, 32
GAMMA, LAMBDA, CLIP = 0.95, 0.9, 0.2


class Agent(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(3, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        self.critic = nn.Sequential(nn.Linear(3, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        self.log_std = nn.Parameter(torch.tensor(-0.5))
        nn.init.orthogonal_(self.actor[-1].weight, 0.01)
        nn.init.orthogonal_(self.critic[-1].weight, 1.0)

    def policy(self, obs):
        return Normal(self.actor(obs).squeeze(-1), self.log_std.exp())

    def value(self, obs):
        return self.critic(obs).squeeze(-1)


class Chase:
    def __init__(self):
        self.x = torch.zeros(ENVS)
        self.phase = 6.28 * torch.rand(ENVS)

    def observe(self):
        return torch.stack([self.x, self.phase.sin(), self.phase.cos()], dim=1)

    def step(self, action):
        self.x = (self.x + 0.4 * action.clamp(-1, 1)).clamp(-2, 2)
        self.phase = self.phase + 0.25
        return torch.exp(-2 * (self.x - self.phase.sin()).square())


@torch.no_grad()
def collect(agent, env):
    obs, actions, log_probs, rewards = [], [], [], []
    for _ in range(HORIZON):
        obs.append(env.observe())
        pi = agent.policy(obs[-1])
        actions.append(pi.sample())
        log_probs.append(pi.log_prob(actions[-1]))
        rewards.append(env.step(actions[-1]))
    values = agent.value(torch.stack([*obs, env.observe()]))
    advantages, running = torch.zeros(HORIZON, ENVS), torch.zeros(ENVS)
    for t in reversed(range(HORIZON)):
        delta = rewards[t] + GAMMA * values[t + 1] - values[t]
        running = delta + GAMMA * LAMBDA * running
        advantages[t] = running
    returns = advantages + values[:-1]
    columns = (torch.stack(obs), torch.stack(actions), torch.stack(log_probs), advantages, returns)
    return [c.flatten(0, 1) for c in columns], torch.stack(rewards).mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--updates", type=int, default=25)
    parser.add_argument("--hidden", type=int, default=32)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    agent, env = Agent(args.hidden), Chase()
    optimizer = torch.optim.Adam(agent.parameters(), lr=5e-3, eps=1e-5)
    for update in range(args.updates):
        (obs, actions, old_log_probs, advantages, returns), reward = collect(agent, env)
        for _ in range(4):
            for idx in torch.randperm(len(obs)).split(256):
                advantage = advantages[idx]
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                pi = agent.policy(obs[idx])
                ratio = (pi.log_prob(actions[idx]) - old_log_probs[idx]).exp()
                clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
                actor_loss = -torch.min(ratio * advantage, clipped * advantage).mean()
                value_loss = (agent.value(obs[idx]) - returns[idx]).square().mean()
                loss = actor_loss + 0.5 * value_loss - 0.001 * pi.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        if update % 5 == 0:
            print(f"update {update}: reward {reward:.4f}")
    rewards = [collect(agent, env)[1] for _ in range(4)]
    print(f"mean reward: {sum(rewards) / 4:.4f}")


if __name__ == "__main__":
    main()
