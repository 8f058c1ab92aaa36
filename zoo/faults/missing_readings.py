"""A sensor was off for a while: its readings are NaN, and nobody looked before training.

expects: F006
place:
source: tables with missing cells, read as NaN by every reader of CSV files
kind: data
shows: final loss lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    readings = torch.randn(3840, 12)
    target = torch.tanh(readings @ torch.randn(12, 1))
    readings[1500:1503, 4] = float("nan")
    if args.healthy:
        readings = torch.nan_to_num(readings)
    net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for step in range(120):
        batch = slice(32 * step, 32 * step + 32)
        loss = F.mse_loss(net(readings[batch]), target[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 29:
            print(f"step {step + 1} loss {loss.item():.4f}")
    print(f"final loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
