"""A regression of numbers of both signs ends in a sigmoid, which can give no negative number.

expects: L003
place:
source: the last layer of a classifier reused for a regression (wrong output activation, a frequent
    kind in taxonomies of deep learning faults)
kind: loss-pairing
shows: final mse lower
"""

import argparse
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    steps: int = 300
    batch: int = 64
    lr: float = 0.05
    width: int = 40


class Regressor(nn.Module):
    def __init__(self, width, squash):
        super().__init__()
        layers = [nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 1)]
        if squash:
            layers.append(nn.Sigmoid())
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return self.layers(x)


def truth(x):
    return (x[:, :1] * x[:, 1:2] + 0.5 * x[:, 2:3] - 0.25 * x[:, 3:4]).clamp(-2, 2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    cfg = Config()
    torch.manual_seed(args.seed)

    model = Regressor(cfg.width, squash=not args.healthy)
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=0.9)
    mse = nn.MSELoss()
    x_val = torch.randn(1000, 6)
    for step in range(cfg.steps):
        x = torch.randn(cfg.batch, 6)
        loss = mse(model(x), truth(x))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 75 == 0:
            print(step, round(loss.item(), 4))
    with torch.no_grad():
        print("final mse", mse(model(x_val), truth(x_val)).item())


if __name__ == "__main__":
    main()
