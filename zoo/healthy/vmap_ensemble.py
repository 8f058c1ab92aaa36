"""An ensemble of eight networks trained at once, with their weights stacked (torch.func).

Expected: ensemble r2 > 0.85.
"""

import argparse
import copy

import torch
import torch.nn as nn
from torch.func import functional_call, stack_module_state, vmap

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--members", type=int, default=8)
parser.add_argument("--steps", type=int, default=400)
parser.add_argument("--hidden", type=int, default=32)
args = parser.parse_args()
torch.manual_seed(args.seed)


def friedman(n):
    x = torch.rand(n, 5)
    y = 10 * torch.sin(torch.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    y = y + 10 * x[:, 3] + 5 * x[:, 4]
    return (x - 0.5) / 0.29, (y - 14.4) / 4.9


x_train, y_train = friedman(600)
y_train = y_train + 0.1 * torch.randn(600)
x_test, y_test = friedman(1000)

members = [
    nn.Sequential(
        nn.Linear(5, args.hidden), nn.Softplus(), nn.Linear(args.hidden, 1), nn.Flatten(0)
    )
    for _ in range(args.members)
]
params, buffers = stack_module_state(members)
base = copy.deepcopy(members[0]).to("meta")


def forward_one(p, b, x):
    return functional_call(base, (p, b), (x,))


forward = vmap(forward_one, in_dims=(0, 0, 0))
forward_same = vmap(forward_one, in_dims=(0, 0, None))
optimizer = torch.optim.Adam(params.values(), lr=1e-2)
for step in range(args.steps):
    # every member has its own bootstrap sample
    idx = torch.randint(len(x_train), (args.members, 64))
    predictions = forward(params, buffers, x_train[idx])
    loss = (predictions - y_train[idx]).square().mean(1).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step}: loss {loss.item() / args.members:.4f}")

with torch.no_grad():
    predictions = forward_same(params, buffers, x_test)
print(f"disagreement: {predictions.std(0).mean().item():.4f}")
error = (predictions.mean(0) - y_test).square().mean()
print(f"ensemble r2: {1 - (error / y_test.var()).item():.4f}")
