"""The blocks of a residual network are two linear layers each, with nothing between or after.

expects: S001
place:
source: the skip taken for what makes a block nonlinear
kind: nonlinearity
shows: final error lower
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, act):
        super().__init__()
        self.widen = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)
        self.act = act

    def forward(self, x):
        return x + self.narrow(self.act(self.widen(x)))


class ResidualMLP(nn.Module):
    def __init__(self, act):
        super().__init__()
        self.inlet = nn.Linear(3, 24)
        self.blocks = nn.Sequential(*(Block(24, act) for _ in range(3)))
        self.outlet = nn.Linear(24, 3)

    def forward(self, x):
        return self.outlet(self.blocks(self.inlet(x)))


def attractor_step(state, dt=0.05):
    """One step of the Lorenz equations, in scaled coordinates."""
    x, y, z = (state * 10).unbind(1)
    change = torch.stack((10 * (y - x), x * (28 - z - 25) - y, x * y - 8 / 3 * (z + 25)), dim=1)
    return dt * change / 10


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    model = ResidualMLP(F.silu if args.healthy else nn.Identity())
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(300):
        state = torch.randn(64, 3)
        loss = F.smooth_l1_loss(model(state), attractor_step(state))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 60 == 0:
            print(f"step {step} loss {loss.item():.5f}")
    state = torch.randn(1000, 3)
    with torch.no_grad():
        error = (model(state) - attractor_step(state)).abs().mean().item()
    print(f"final error {error:.5f}")


if __name__ == "__main__":
    main()
