"""A temporal convolutional network with weight normalization on the adding problem.

Two of the numbers are marked; the answer is their sum.

Expected: test mse < 0.05 (always answering one errs by 0.167).
"""

import argparse

import torch
import torch.nn as nn
from torch.nn.utils.parametrizations import weight_norm


def adding_problem(n, length=24):
    numbers = torch.rand(n, length)
    marks = torch.zeros(n, length)
    first = torch.randint(length // 2, (n,))
    second = torch.randint(length // 2, length, (n,))
    rows = torch.arange(n)
    marks[rows, first] = marks[rows, second] = 1
    return torch.stack([numbers, marks], 1), numbers[rows, first] + numbers[rows, second]


class Chomp1d(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, x):
        return x[:, :, : -self.size].contiguous()


class TemporalBlock(nn.Module):
    def __init__(self, inputs, outputs, dilation, kernel_size=3):
        super().__init__()
        padding = (kernel_size - 1) * dilation
        self.net = nn.Sequential(
            weight_norm(
                nn.Conv1d(inputs, outputs, kernel_size, padding=padding, dilation=dilation)
            ),
            Chomp1d(padding),
            nn.ReLU(),
            weight_norm(
                nn.Conv1d(outputs, outputs, kernel_size, padding=padding, dilation=dilation)
            ),
            Chomp1d(padding),
            nn.ReLU(),
        )
        self.downsample = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else None
        self.relu = nn.ReLU()

    def forward(self, x):
        res = x if self.downsample is None else self.downsample(x)
        return self.relu(self.net(x) + res)


class TCN(nn.Module):
    def __init__(self, channels, levels):
        super().__init__()
        blocks = [TemporalBlock(2 if i == 0 else channels, channels, 2**i) for i in range(levels)]
        self.tcn = nn.Sequential(*blocks)
        self.linear = nn.Linear(channels, 1)

    def forward(self, x):
        return self.linear(self.tcn(x)[:, :, -1]).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nhid", type=int, default=16)
    parser.add_argument("--levels", type=int, default=4)
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x, y = adding_problem(4000)
    x_test, y_test = adding_problem(500)
    model = TCN(args.nhid, args.levels)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    for step in range(args.steps):
        idx = torch.randint(len(x), (32,))
        loss = nn.functional.mse_loss(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        scheduler.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        error = nn.functional.mse_loss(model(x_test), y_test).item()
    print(f"test mse: {error:.4f}")


if __name__ == "__main__":
    main()
