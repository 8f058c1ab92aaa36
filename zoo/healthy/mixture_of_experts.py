"""A sparse mixture of experts: each sample goes to two of four, and a loss balances their load.

The target is another function in each of four corners of the plane.

Expected: r2 > 0.85.
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class MoE(nn.Module):
    def __init__(self, dim, hidden, num_experts=4, k=2):
        super().__init__()
        self.k = k
        self.gate = nn.Linear(dim, num_experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, dim))
            for _ in range(num_experts)
        )

    def forward(self, x):
        probabilities = self.gate(x).softmax(-1)
        weights, chosen = probabilities.topk(self.k, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            rows, slot = torch.where(chosen == i)
            if len(rows):
                out = out.index_add(0, rows, weights[rows, slot, None] * expert(x[rows]))
        # Switch transformer: fraction of samples times mean probability, one if balanced
        load = F.one_hot(chosen, len(self.experts)).float().mean((0, 1))
        balance = len(self.experts) * (load * probabilities.mean(0)).sum()
        return out, balance


class Model(nn.Module):
    def __init__(self, dim=16, hidden=32):
        super().__init__()
        self.inp = nn.Linear(2, dim)
        self.moe = MoE(dim, hidden)
        self.out = nn.Linear(dim, 1)

    def forward(self, x):
        h = F.relu(self.inp(x))
        y, balance = self.moe(h)
        return self.out(h + y).squeeze(-1), balance


def piecewise(x):
    a, b = x.unbind(1)
    right = torch.where(b > 0, torch.sin(3 * a), a * b)
    left = torch.where(b > 0, -a, torch.cos(3 * b))
    return torch.where(a > 0, right, left)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--steps", type=int, default=400)
    ap.add_argument("--hidden", type=int, default=32)
    a = ap.parse_args()
    torch.manual_seed(a.seed)
    model = Model(hidden=a.hidden)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, a.steps)
    for step in range(a.steps):
        x = torch.randn(128, 2)
        prediction, balance = model(x)
        loss = F.mse_loss(prediction, piecewise(x)) + 0.01 * balance
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.4f}, balance {balance.item():.3f}")
    model.eval()
    x = torch.randn(2000, 2)
    y = piecewise(x)
    with torch.no_grad():
        error = F.mse_loss(model(x)[0], y)
    print(f"r2: {1 - (error / y.var()).item():.4f}")
