"""Advantage actor-critic on many bandits with a context: which of four arms pays most?

One network with a policy head and a value head; an entropy bonus keeps it exploring.

Expected: regret < 0.20 (reward lost against the best arm; a random choice loses about 1.1).
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class ActorCritic(nn.Module):
    def __init__(self, observations, actions, hidden):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(observations, hidden), nn.Tanh())
        self.action_head = nn.Linear(hidden, actions)
        self.value_head = nn.Linear(hidden, 1)
        nn.init.orthogonal_(self.action_head.weight, gain=0.01)
        nn.init.zeros_(self.action_head.bias)

    def forward(self, x):
        h = self.body(x)
        return self.action_head(h), self.value_head(h).squeeze(-1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--updates", type=int, default=300)
    p.add_argument("--hidden", type=int, default=64)
    args = p.parse_args()
    torch.manual_seed(args.seed)
    payoff = torch.randn(8, 4) / 8**0.5

    agent = ActorCritic(8, 4, args.hidden)
    optimizer = torch.optim.RMSprop(agent.parameters(), lr=3e-3, alpha=0.99, eps=1e-5)
    for update in range(1, args.updates + 1):
        context = torch.randn(128, 8)
        logits, value = agent(context)
        pi = torch.distributions.Categorical(logits=logits)
        arm = pi.sample()
        reward = (context @ payoff).gather(1, arm[:, None]).squeeze(1) + 0.1 * torch.randn(128)
        advantage = reward - value
        actor = -(pi.log_prob(arm) * advantage.detach()).mean()
        critic = F.smooth_l1_loss(value, reward)
        loss = actor + 0.5 * critic - 0.01 * pi.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()
        if update % 75 == 0:
            print(f"update {update}: reward {reward.mean():.3f} entropy {pi.entropy().mean():.3f}")

    context = torch.randn(4000, 8)
    pay = context @ payoff
    with torch.no_grad():
        chosen = agent(context)[0].argmax(1)
    regret = pay.amax(1) - pay.gather(1, chosen[:, None]).squeeze(1)
    print(f"regret: {regret.mean().item():.4f}")


if __name__ == "__main__":
    main()
