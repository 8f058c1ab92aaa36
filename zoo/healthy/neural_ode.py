"""Learns the law of a damped pendulum from short pieces of its path, through an integrator.

The gradient goes through ten steps of the Runge-Kutta method.

Expected: path error < 0.20 (mean distance after ten steps; standing still errs by about 1.5).
"""

import argparse

import torch
import torch.nn as nn


class ODEFunc(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, hidden),
            nn.Tanh(),
            nn.Linear(hidden, hidden),
            nn.Tanh(),
            nn.Linear(hidden, 2),
        )
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)

    def forward(self, y):
        return self.net(y)


def pendulum(y):
    angle, speed = y.unbind(-1)
    return torch.stack([speed, -2 * torch.sin(angle) - 0.1 * speed], dim=-1)


def odeint(f, y, steps=10, h=0.15):
    path = []
    for _ in range(steps):
        k1 = f(y)
        k2 = f(y + h / 2 * k1)
        k3 = f(y + h / 2 * k2)
        k4 = f(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path.append(y)
    return torch.stack(path)


def starts(n):
    return torch.stack([4 * torch.rand(n) - 2, 3 * torch.rand(n) - 1.5], dim=1)


def main():
    parser = argparse.ArgumentParser("ODE demo")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--niters", type=int, default=150)
    parser.add_argument("--hidden", type=int, default=40)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    func = ODEFunc(args.hidden)
    optimizer = torch.optim.RMSprop(func.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=50, gamma=0.4)
    for itr in range(1, args.niters + 1):
        y0 = starts(64)
        with torch.no_grad():
            true = odeint(pendulum, y0)
        optimizer.zero_grad()
        loss = torch.mean(torch.abs(odeint(func, y0) - true))
        loss.backward()
        optimizer.step()
        scheduler.step()
        if itr % 30 == 0:
            print(f"Iter {itr:04d} | Total Loss {loss.item():.6f}")

    with torch.no_grad():
        y0 = starts(500)
        distance = (odeint(func, y0)[-1] - odeint(pendulum, y0)[-1]).norm(dim=1).mean().item()
    print(f"path error: {distance:.4f}")


if __name__ == "__main__":
    main()
