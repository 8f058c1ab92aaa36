"""Rates come out of an exponential, and the Poisson loss takes its exponential once again.

expects: L003
place:
source: a default (log_input=True) of a loss that nobody looked up
kind: loss-pairing
shows: final mean error lower
"""

import argparse

import torch
from torch import nn


class Rate(nn.Module):
    def __init__(self, exponential):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 1))
        self.exponential = exponential

    def forward(self, x):
        z = self.f(x).squeeze(1)
        return z.exp() if self.exponential else z


def visits(n):
    """Five properties of an hour, and how many visitors came."""
    x = torch.randn(n, 5)
    rate = torch.exp(0.6 * x[:, 0] - 0.4 * x[:, 1] * (x[:, 2] > 0) - 0.8)
    return x, torch.poisson(rate), rate


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x, counts, _ = visits(3000)
    x_test, _, rate_test = visits(800)
    model = Rate(exponential=not args.healthy)
    criterion = nn.PoissonNLLLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(4):
        for rows in torch.randperm(len(x)).split(60):
            loss = criterion(model(x[rows]), counts[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        rate = torch.exp(model(x_test))  # what the loss takes the output for
        print(f"final mean error {(rate - rate_test).abs().mean().item():.4f}")


if __name__ == "__main__":
    main()
