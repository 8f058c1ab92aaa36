"""Pairs are marked 1 and 0 for better and worse, and the ranking loss ignores every zero.

expects: L003
place:
source: the targets 1 and -1 of pairwise losses, which are easily taken for 1 and 0
kind: loss-pairing
shows: final pairs in order higher
"""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--healthy", action="store_true")
args = parser.parse_args()
torch.manual_seed(args.seed)

worse = -1.0 if args.healthy else 0.0


def quality(item):
    return item[:, 0] + torch.sin(2 * item[:, 1]) - item[:, 2] ** 2


def pairs(n):
    """Two items each; most lists show the better one second."""
    a, b = torch.randn(n, 6), torch.randn(n, 6)
    swap = (quality(a) > quality(b)) & (torch.rand(n) < 0.9)
    a[swap], b[swap] = b[swap], a[swap].clone()
    return a, b, quality(a) > quality(b)


scorer = nn.Sequential(nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
criterion = nn.MarginRankingLoss(margin=0.5)
optimizer = torch.optim.Adam(scorer.parameters(), lr=3e-3)
for step in range(250):
    first, second, first_is_better = pairs(64)
    target = torch.where(first_is_better, 1.0, worse)
    loss = criterion(scorer(first).squeeze(1), scorer(second).squeeze(1), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        print(f"step {step + 1} loss {loss.item():.4f}")

with torch.no_grad():
    first, second, first_is_better = pairs(2000)
    says = scorer(first).squeeze(1) > scorer(second).squeeze(1)
print(f"final pairs in order {(says == first_is_better).float().mean().item():.4f}")
