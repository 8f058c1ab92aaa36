"""Readings at irregular times, each with the time since the one before: what comes next?

The signal is a damped oscillation, read with gaps of any length; the noise is 0.05.

Expected: r2 > 0.76 (of the value at the asked time).
"""

import argparse

import torch
import torch.nn as nn


def simulate(n, readings=16):
    gaps = torch.rand(n, readings + 1).mul(1.5).add(0.05)
    times = gaps.cumsum(1)
    frequency = 0.5 + 1.0 * torch.rand(n, 1)
    phase = 6.2832 * torch.rand(n, 1)
    damping = 0.1 * torch.rand(n, 1)
    values = torch.exp(-damping * times) * torch.sin(frequency * times + phase)
    noisy = values[:, :-1] + 0.05 * torch.randn(n, readings)
    # each step sees a reading and the gap until the next one
    return torch.stack([noisy, gaps[:, 1:]], dim=-1), values[:, -1]


class GRUDecay(nn.Module):
    """A GRU whose state decays over the gaps between readings."""

    def __init__(self, hidden):
        super().__init__()
        self.cell = nn.GRUCell(2, hidden)
        self.decay = nn.Linear(1, hidden)
        self.head = nn.Sequential(nn.Linear(hidden + 1, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        self.hidden = hidden

    def forward(self, series):
        h = series.new_zeros(len(series), self.hidden)
        for reading in series.unbind(1):
            h = self.cell(reading, h)
            h = h * torch.exp(-torch.relu(self.decay(reading[:, 1:])))
        return self.head(torch.cat([h, series[:, -1, 1:]], dim=1)).squeeze(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--steps", type=int, default=300)
    opt = parser.parse_args()
    torch.manual_seed(opt.seed)
    x, y = simulate(4000)
    x_val, y_val = simulate(500)
    net = GRUDecay(opt.hidden)
    optim = torch.optim.Adam(net.parameters(), lr=5e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(optim, opt.steps)
    huber = nn.SmoothL1Loss(beta=0.3)
    for i in range(opt.steps):
        pick = torch.randperm(len(x))[:64]
        loss = huber(net(x[pick]), y[pick])
        optim.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optim.step()
        sched.step()
        if i % 100 == 0:
            print(f"{i:4d} loss {loss.item():.5f}")
    with torch.no_grad():
        error = (net(x_val) - y_val).square().mean()
    print(f"r2 {(1 - error / y_val.var()).item():.4f}")


if __name__ == "__main__":
    main()
