"""The gradients are cleared between backward and step, so that every step is by zero.

expects: O004
place: Adam
source: zero_grad called wherever there was room
kind: loop
shows: final mse lower
"""

import argparse

import torch
from torch import nn


class Fit:
    """A small trainer with hooks, as many projects have one."""

    def __init__(self, model, optimizer, clear_early):
        self.model, self.optimizer = model, optimizer
        self.clear_early = clear_early

    def before_forward(self):
        if self.clear_early:
            self.optimizer.zero_grad(set_to_none=False)

    def after_backward(self):
        if not self.clear_early:
            self.optimizer.zero_grad(set_to_none=False)

    def step(self, x, y):
        self.before_forward()
        loss = nn.functional.mse_loss(self.model(x), y)
        loss.backward()
        self.after_backward()
        self.optimizer.step()
        return loss.item()


def wave(n):
    x = 6 * torch.rand(n, 1) - 3
    return x / 1.7, torch.sin(2 * x) * torch.exp(-x.abs() / 2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    model = nn.Sequential(
        nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    trainer = Fit(model, optimizer, clear_early=args.healthy)
    for step in range(250):
        loss = trainer.step(*wave(64))
        if step % 50 == 0:
            print(f"step {step} loss {loss:.5f}")
    with torch.no_grad():
        x, y = wave(1000)
        print(f"final mse {nn.functional.mse_loss(model(x), y).item():.5f}")


if __name__ == "__main__":
    main()
