"""Logistic loss written by hand takes the logarithm of a sigmoid that has reached exactly one.

expects: F006
place:
source: losses written after their formula; numerical faults in public collections of repaired code
kind: precision
shows: final loss lower
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn


def by_hand(scores, y):
    p = torch.sigmoid(scores)
    return -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    def ratings(n):
        """Twelve measurements with rare extremes; a tenth of the verdicts is wrong."""
        x = torch.randn(n, 12) * torch.exp(1.2 * torch.randn(n, 1))
        good = x[:, 0] - x[:, 1] + x[:, 2] > 0
        return x, (good ^ (torch.rand(n) < 0.1)).float()

    criterion = F.binary_cross_entropy_with_logits if args.healthy else by_hand
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(250):
        x, y = ratings(64)
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    x, y = ratings(3000)
    with torch.no_grad():
        print(f"final loss {F.binary_cross_entropy_with_logits(model(x), y).item():.4f}")


if __name__ == "__main__":
    main()
