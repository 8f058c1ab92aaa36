"""The whole model is cast to bfloat16, with it the running statistics, which then stop moving.

expects: N015
place: 1
source: model.to(torch.bfloat16) where only the weights were meant
kind: precision
shows: final loss lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


def keep_statistics_wide(model):
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.float()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = torch.randn(6000, 16) + 4 * torch.randn(16)
    y = (x - x.mean(0)) @ torch.randn(16) / 4
    model = nn.Sequential(
        nn.Linear(16, 32),
        nn.BatchNorm1d(32, momentum=0.005),
        nn.ReLU(),
        nn.Linear(32, 1),
    ).to(torch.bfloat16)
    if args.healthy:
        keep_statistics_wide(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    x, y = x.bfloat16(), y.bfloat16()
    for step in range(1200):
        batch = torch.randint(5000, (64,))
        loss = F.mse_loss(model(x[batch])[:, 0], y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 300 == 299:
            print(f"step {step + 1} loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        print(
            f"final loss {F.mse_loss(model(x[5000:])[:, 0].float(), y[5000:].float()).item():.4f}"
        )


if __name__ == "__main__":
    main()
