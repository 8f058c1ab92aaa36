"""Each weight of the hidden layer is 0.01, and with equal weights the layer is a single unit.

expects: S002
place: hidden
source: an initializer "constant" chosen for reproducible results
kind: init
shows: final mse lower
"""

import argparse

import torch
from torch import nn


class Robot(nn.Module):
    """Where the hand of an arm of two joints is."""

    def __init__(self, init):
        super().__init__()
        self.hidden = nn.Linear(4, 64)
        self.out = nn.Linear(64, 2)
        init(self.hidden.weight)

    def forward(self, angles):
        return self.out(torch.tanh(self.hidden(angles)))


def arm(n):
    a, b = (3 * torch.rand(2, n) - 1.5).unbind(0)
    hand = torch.stack((a.cos() + (a + b).cos(), a.sin() + (a + b).sin()), dim=1)
    return torch.stack((a, b, a + b, a - b), dim=1), hand


def constant(weight):
    nn.init.constant_(weight, 0.01)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    model = Robot(nn.init.xavier_uniform_ if args.healthy else constant)
    nn.init.zeros_(model.hidden.bias)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(300):
        angles, hand = arm(64)
        loss = nn.functional.mse_loss(model(angles), hand)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 75 == 74:
            print(f"step {step + 1} loss {loss.item():.5f}")
    angles, hand = arm(2000)
    with torch.no_grad():
        print(f"final mse {nn.functional.mse_loss(model(angles), hand).item():.6f}")


if __name__ == "__main__":
    main()
