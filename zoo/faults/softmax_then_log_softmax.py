"""The forward pass ends in a softmax, and the training step takes a log-softmax of it.

expects: L003
place:
source: model and training code written by two people, each sure that the softmax was theirs
kind: loss-pairing
shows: final loss lower
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical


class Policy(nn.Module):
    """Imitates an expert that picks one of seven moves."""

    def __init__(self, normalized):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(9, 64), nn.ELU(), nn.Linear(64, 64), nn.ELU())
        self.moves = nn.Linear(64, 7)
        self.normalized = normalized

    def forward(self, state):
        z = self.moves(self.trunk(state))
        return z.softmax(1) if self.normalized else z


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    taste = torch.randn(9, 7)
    policy = Policy(normalized=not args.healthy)
    optimizer = torch.optim.Adam(policy.parameters(), lr=2e-3)

    def batch(n):
        state = torch.randn(n, 9)
        return state, Categorical(logits=3 * torch.tanh(state @ taste)).sample()

    def imitation_loss(state, move):
        return F.nll_loss(F.log_softmax(policy(state), dim=1), move)

    for step in range(200):
        loss = imitation_loss(*batch(64))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    with torch.no_grad():
        print(f"final loss {imitation_loss(*batch(2000)).item():.4f}")


if __name__ == "__main__":
    main()
