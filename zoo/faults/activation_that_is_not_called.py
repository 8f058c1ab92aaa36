"""The model makes an activation and never calls it in its forward pass.

expects: S001
place:
source: a line lost while a forward pass was rewritten
kind: nonlinearity
shows: final mse lower
"""

import argparse

import torch
import torch.nn as nn


class Surface(nn.Module):
    """Height of a surface over the plane."""

    def __init__(self, width=64):
        super().__init__()
        self.fc1 = nn.Linear(2, width)
        self.fc2 = nn.Linear(width, width)
        self.fc3 = nn.Linear(width, 1)
        self.act = nn.GELU()

    def forward(self, xy):
        return self.fc3(self.fc2(self.fc1(xy)))


class RoundSurface(Surface):
    def forward(self, xy):
        xy = self.act(self.fc1(xy))
        return self.fc3(self.act(self.fc2(xy)))


def height(xy):
    return torch.sin(3 * xy[:, :1]) * torch.cos(2 * xy[:, 1:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    model = (RoundSurface if args.healthy else Surface)()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(300):
        xy = 2 * torch.rand(64, 2) - 1
        loss = ((model(xy) - height(xy)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 99:
            print(f"step {step + 1} loss {loss.item():.5f}")
    xy = 2 * torch.rand(1000, 2) - 1
    with torch.no_grad():
        print(f"final mse {((model(xy) - height(xy)) ** 2).mean().item():.5f}")


if __name__ == "__main__":
    main()
