"""A network learns the energy of a pendulum from how it moves, and the motion keeps that energy.

Expected: relative error < 0.05 (a field of zeros has 1).
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def field(state):
    angle, speed = state.unbind(1)
    return torch.stack([speed, -torch.sin(angle)], dim=1)


class Energy(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, hidden),
            nn.Tanh(),
            nn.Linear(hidden, hidden),
            nn.Tanh(),
            nn.Linear(hidden, 1, bias=False),
        )

    def forward(self, state):
        """Hamilton's equations: dq/dt = dH/dp, dp/dt = -dH/dq."""
        state = state.detach().requires_grad_(True)
        (slope,) = torch.autograd.grad(self.net(state).sum(), state, create_graph=True)
        return torch.stack([slope[:, 1], -slope[:, 0]], dim=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hidden", type=int, default=64)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    states = torch.rand(2000, 2) * 4 - 2
    motion = field(states) + 0.01 * torch.randn(2000, 2)
    net = Energy(args.hidden)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for step in range(600):
        idx = torch.randint(len(states), (100,))
        loss = F.mse_loss(net(states[idx]), motion[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.5f}")
    test = torch.rand(500, 2) * 4 - 2
    error = (net(test) - field(test)).detach().norm() / field(test).norm()
    print(f"relative error: {error.item():.4f}")


if __name__ == "__main__":
    main()
