"""The function of a training step makes its own optimizer, which never remembers anything.

expects: O015
place:
source: an optimizer made where it is used
kind: optimizer
shows: final loss lower
"""

import argparse

import torch
import torch.nn as nn


class Regression(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.layers(x)


def make_optimizer(model):
    return torch.optim.Adam(model.parameters(), lr=0.02)


def train_step(model, x, y, optimizer=None):
    if optimizer is None:
        optimizer = make_optimizer(model)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def data(n, weights):
    x = torch.randn(n, 10)
    y = torch.tanh(x @ weights) + 0.5 * torch.randn(n, 1)
    return x, y


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    weights = torch.randn(10, 1) / 3
    model = Regression()
    optimizer = make_optimizer(model) if args.healthy else None
    for step in range(300):
        loss = train_step(model, *data(32, weights), optimizer)
        if step % 60 == 0:
            print(f"step {step} loss {loss:.4f}")
    x = torch.randn(2000, 10)
    with torch.no_grad():
        loss = nn.functional.mse_loss(model(x), torch.tanh(x @ weights))
    print(f"final loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
