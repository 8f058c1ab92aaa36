"""The critic's score passes a tanh, and the logistic loss on it can never be sure.

expects: L003
place:
source: an output activation left from a model of continuous actions
kind: loss-pairing
shows: final loss lower
"""

import argparse

import torch
from torch import nn


class Critic(nn.Module):
    def __init__(self, bounded):
        super().__init__()
        self.encode = nn.LSTM(3, 24, batch_first=True)
        self.score = nn.Linear(24, 1)
        self.bounded = bounded

    def forward(self, path):
        _, (h, _) = self.encode(path)
        score = self.score(h[-1]).squeeze(-1)
        return score.tanh() if self.bounded else score


def paths(n, steps=12):
    """Random walks, half of which drift along one axis."""
    drifting = torch.rand(n) < 0.5
    move = torch.randn(n, steps, 3)
    move[drifting, :, 0] += 0.8
    return move.cumsum(1) / 3, drifting.float()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    critic = Critic(bounded=not args.healthy)
    bce = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(critic.parameters(), lr=0.01)
    for step in range(120):
        path, label = paths(48)
        loss = bce(critic(path), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(f"{step:4d} {loss.item():.4f}")
    path, label = paths(1000)
    with torch.no_grad():
        print(f"final loss {bce(critic(path), label).item():.4f}")


if __name__ == "__main__":
    main()
