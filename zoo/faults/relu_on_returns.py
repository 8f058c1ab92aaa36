"""Daily returns go up and down, but the network that forecasts them ends in a ReLU.

expects: L003
place:
source: a block "linear, ReLU" repeated once too often
kind: loss-pairing
shows: final error lower
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn


def block(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, outputs), nn.ReLU())


def build(last):
    return nn.Sequential(block(10, 64), block(64, 32), last)


def series(length):
    """Returns that follow a weighted sum of the ten before, with noise."""
    weights = torch.linspace(0.35, -0.25, 10)
    values = [torch.randn(()) for _ in range(10)]
    for _ in range(length):
        window = torch.stack(values[-10:])
        values.append(torch.tanh(weights @ window * 2) + 0.3 * torch.randn(()))
    return torch.stack(values)


def main():
    parser = argparse.ArgumentParser(description="forecast the next return")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    parser.add_argument("--epochs", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    returns = series(1800)
    windows = returns.unfold(0, 11, 1)
    x, y = windows[:, :10], windows[:, 10:]
    x_train, y_train, x_test, y_test = x[:1500], y[:1500], x[1500:], y[1500:]

    model = build(nn.Linear(32, 1) if args.healthy else block(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        for chosen in torch.randperm(len(x_train)).split(32):
            loss = F.l1_loss(model(x_train[chosen]), y_train[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} train {loss.item():.4f}")
    with torch.no_grad():
        print(f"final error {F.l1_loss(model(x_test), y_test).item():.4f}")


if __name__ == "__main__":
    main()
