"""Missing cells hold -999, and mean and deviation are taken of the columns as they are.

expects: L007
place: 0
source: standardizing before cleaning; what is left of the true values is a narrow line
kind: preprocessing
shows: final error lower
"""

import argparse

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    readings = 20 + 3 * torch.randn(1600, 8)
    wear = torch.tanh((readings - 20) / 3 @ torch.randn(8, 6)).sum(1)
    missing = torch.rand(1600, 8) < 0.04
    readings[missing] = -999
    if args.healthy:
        middle = readings[:1200].median(0).values
        readings = torch.where(missing, middle, readings)
    x = (readings - readings[:1200].mean(0)) / readings[:1200].std(0)

    net = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 1), nn.Flatten(0))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(12):
        for rows in torch.randperm(1200).split(50):
            loss = nn.functional.mse_loss(net(x[rows]), wear[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        error = (net(x[1200:]) - wear[1200:]).abs().mean().item()
    print(f"final error {error:.4f}")


if __name__ == "__main__":
    main()
