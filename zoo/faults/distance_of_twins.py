"""A distance is a bare square root: for a pair of equal images its derivative is infinite.

expects: F006
place:
source: contrastive losses on pairs, in which an image sometimes meets itself
kind: gradient
shows: final loss lower
"""

import argparse

import torch
from torch import nn


class Distance(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.eps = eps

    def forward(self, left, right):
        return ((left - right).square().sum(1) + self.eps).sqrt()


class Siamese(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(20, 32), nn.Tanh(), nn.Linear(32, 8, bias=False))
        self.distance = Distance(eps)

    def forward(self, left, right):
        return self.distance(self.embed(left), self.embed(right))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    kinds = torch.randint(0, 4, (3840, 2))
    centres = torch.randn(4, 20)
    left, right = (centres[kinds[:, i]] + 0.3 * torch.randn(3840, 20) for i in (0, 1))
    same = (kinds[:, 0] == kinds[:, 1]).float()
    right[1300], same[1300] = left[1300], 1.0
    net = Siamese(eps=1e-6 if args.healthy else 0.0)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for step in range(120):
        batch = slice(32 * step, 32 * step + 32)
        distance = net(left[batch], right[batch])
        apart = (1 - distance).clamp_min(0).square()
        loss = (same[batch] * distance.square() + (1 - same[batch]) * apart).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 29:
            print(f"step {step + 1} loss {loss.item():.4f}")
    print(f"final loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
