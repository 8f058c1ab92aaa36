"""A recurrent cell of one's own has no activation, so the network is a linear filter.

expects: S001
place:
source: a recurrence written after its formula, without the function around it
kind: nonlinearity
shows: final mse lower
"""

import argparse

import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self, inputs, width, squash):
        super().__init__()
        self.from_input = nn.Linear(inputs, width)
        self.from_state = nn.Linear(width, width, bias=False)
        nn.init.orthogonal_(self.from_state.weight, gain=0.9)
        self.squash = squash

    def forward(self, x, state):
        return self.squash(self.from_input(x) + self.from_state(state))


class Reader(nn.Module):
    def __init__(self, squash):
        super().__init__()
        self.cell = Cell(2, 32, squash)
        self.out = nn.Linear(32, 1)

    def forward(self, series):
        state = series.new_zeros(len(series), 32)
        for x in series.unbind(1):
            state = self.cell(x, state)
        return self.out(state).squeeze(1)


def series(n, length=6):
    """Whether both numbers agree, summed over time."""
    x = torch.randn(n, length, 2)
    return x, (x[:, :, 0] * x[:, :, 1]).tanh().sum(1) / 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    model = Reader(torch.tanh if args.healthy else nn.Identity())
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    mse = nn.MSELoss()
    for step in range(300):
        x, y = series(64)
        loss = mse(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 99:
            print(f"step {step + 1} loss {loss.item():.4f}")
    x, y = series(1000)
    with torch.no_grad():
        print(f"final mse {mse(model(x), y).item():.4f}")


if __name__ == "__main__":
    main()
