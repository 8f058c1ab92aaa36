"""A physics-informed network solves the heat equation u_t = 0.1 u_xx from its residual.

Starts as sin(pi x), is zero at both ends; the exact answer is sin(pi x) exp(-0.1 pi^2 t).

Expected: relative error < 0.10.
"""

import argparse
import math
from itertools import pairwise

import torch
import torch.nn as nn

ALPHA = 0.1


class PINN(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        sizes = [2] + [width] * depth
        self.hidden = nn.ModuleList(nn.Linear(i, o) for i, o in pairwise(sizes))
        self.out = nn.Linear(width, 1)
        for layer in [*self.hidden, self.out]:
            nn.init.xavier_normal_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x, t):
        h = torch.cat([2 * x - 1, 2 * t - 1], dim=1)
        for layer in self.hidden:
            h = torch.tanh(layer(h))
        return self.out(h)


def grad(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


def residual(model, n):
    x = torch.rand(n, 1, requires_grad=True)
    t = torch.rand(n, 1, requires_grad=True)
    u = model(x, t)
    return grad(u, t) - ALPHA * grad(grad(u, x), x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--iterations", type=int, default=400)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--depth", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    model = PINN(args.width, args.depth)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.993)
    ends = torch.tensor([0.0, 1.0]).repeat(25)[:, None]
    for it in range(args.iterations):
        x0 = torch.rand(50, 1)
        initial = (model(x0, torch.zeros_like(x0)) - torch.sin(math.pi * x0)).square().mean()
        boundary = model(ends, torch.rand(50, 1)).square().mean()
        physics = residual(model, 100).square().mean()
        loss = physics + 5 * (initial + boundary)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if it % 100 == 0:
            print(f"it {it}: physics {physics.item():.2e} data {(initial + boundary).item():.2e}")

    x, t = torch.rand(2000, 1), torch.rand(2000, 1)
    exact = torch.sin(math.pi * x) * torch.exp(-ALPHA * math.pi**2 * t)
    with torch.no_grad():
        error = (model(x, t) - exact).norm() / exact.norm()
    print(f"relative error: {error.item():.4f}")


if __name__ == "__main__":
    main()
