"""The forward pass calls relu and does not keep what it returns.

expects: S001
place:
source: functional calls written like those that work in place
kind: nonlinearity
shows: final loss lower
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn


class Detector(nn.Module):
    def __init__(self, inplace):
        super().__init__()
        self.inplace = inplace
        self.embed = nn.Linear(16, 40)
        self.middle = nn.Linear(40, 40)
        self.head = nn.Linear(40, 1)

    def forward(self, x):
        x = self.embed(x)
        F.relu(x, inplace=self.inplace)
        x = self.middle(x)
        F.relu(x, inplace=self.inplace)
        return self.head(x).squeeze(-1)


def sample(n):
    """Whether two of the sixteen numbers are far apart."""
    x = torch.randn(n, 16)
    return x, ((x[:, 3] - x[:, 8]).abs() > 1).float()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    net = Detector(inplace=args.healthy)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for step in range(300):
        x, y = sample(64)
        loss = F.binary_cross_entropy_with_logits(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 75 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    with torch.no_grad():
        x, y = sample(2000)
        print(f"final loss {F.binary_cross_entropy_with_logits(net(x), y).item():.4f}")


if __name__ == "__main__":
    main()
