"""A single reading per sample is passed through LayerNorm, which leaves nothing of one number.

expects: N012
place: norm
source: a model for tables that normalizes its input, used with a table of one column
kind: normalization
shows: final error lower
"""

import argparse

import torch
from torch import nn


class Curve(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.norm = norm
        self.net = nn.Sequential(
            nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1)
        )

    def forward(self, x):
        return self.net(self.norm(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    temperature = 15 + 8 * torch.randn(2000, 1)
    demand = ((temperature - 18) / 6).square() + 0.1 * torch.randn(2000, 1)
    curve = Curve(nn.BatchNorm1d(1) if args.healthy else nn.LayerNorm(1))
    optimizer = torch.optim.Adam(curve.parameters(), lr=5e-3)
    for step in range(200):
        batch = torch.randint(1600, (64,))
        loss = (curve(temperature[batch]) - demand[batch]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    curve.eval()
    with torch.no_grad():
        error = (curve(temperature[1600:]) - demand[1600:]).abs().mean().item()
    print(f"final error {error:.4f}")


if __name__ == "__main__":
    main()
