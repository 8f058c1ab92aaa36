"""Fits a curve with L-BFGS on the whole data, with a closure.

Expected: r2 > 0.95.
"""

import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=25)
parser.add_argument("--hidden", type=int, default=20)
args = parser.parse_args()
torch.manual_seed(args.seed)


def f(x):
    return torch.sin(2 * x) + 0.3 * x


x = torch.linspace(-3, 3, 200)[:, None]
y = f(x) + 0.05 * torch.randn_like(x)
x_test = torch.linspace(-2.9, 2.9, 500)[:, None]

model = nn.Sequential(nn.Linear(1, args.hidden), nn.Tanh(), nn.Linear(args.hidden, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=10)

for i in range(args.steps):

    def closure():
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        return loss

    loss = optimizer.step(closure)
    if i % 5 == 0:
        print("STEP:", i, "loss:", round(loss.item(), 5))

with torch.no_grad():
    error = criterion(model(x_test), f(x_test))
print(f"r2: {1 - (error / f(x_test).var()).item():.4f}")
