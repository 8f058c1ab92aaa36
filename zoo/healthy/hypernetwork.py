"""A hypernetwork writes the weights of a small network from the parameters of a sine.

Expected: r2 > 0.90 (over sines it was not trained on).
"""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=500)
parser.add_argument("--hidden", type=int, default=64)
args = parser.parse_args()
torch.manual_seed(args.seed)

INNER = 16


class HyperNetwork(nn.Module):
    def __init__(self, context, hidden):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(context, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.w1 = nn.Linear(hidden, INNER)
        self.b1 = nn.Linear(hidden, INNER)
        self.w2 = nn.Linear(hidden, INNER)
        self.b2 = nn.Linear(hidden, 1)

    def forward(self, context, x):
        """Context (N, 2) and points (N, P) to values (N, P)."""
        h = self.body(context)
        z = x[:, :, None] * self.w1(h)[:, None] + self.b1(h)[:, None]
        return (torch.tanh(z) * self.w2(h)[:, None]).sum(-1) + self.b2(h)


def sines(n, points=24):
    amplitude, phase = 0.5 + torch.rand(n, 1), 3 * torch.rand(n, 1)
    x = 4 * torch.rand(n, points) - 2
    context = torch.cat([(amplitude - 1) / 0.29, (phase - 1.5) / 0.87], dim=1)
    return context, x, amplitude * torch.sin(2 * x + phase)


net = HyperNetwork(2, args.hidden)
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
for step in range(args.steps):
    context, x, y = sines(64)
    loss = (net(context, x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 100 == 0:
        print(f"step {step} loss {loss.item():.4f}")

with torch.no_grad():
    context, x, y = sines(500)
    print(f"r2: {1 - ((net(context, x) - y).square().mean() / y.var()).item():.4f}")
