"""The table lies sorted by price, and its rows are taken in that order, batch after batch.

expects: L018
place:
source: a loop over slices of a table that was sorted in a spreadsheet
kind: data
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

    x = torch.randn(2000, 8)
    price = torch.tanh(x @ torch.randn(8, 6)).sum(1, keepdim=True)
    price = (price - price[:1600].mean()) / price[:1600].std()
    x_test, price_test = x[1600:], price[1600:]
    rank = price[:1600, 0].argsort()
    x, price = x[rank], price[rank]

    net = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for epoch in range(8):
        order = torch.randperm(1600) if args.healthy else torch.arange(1600)
        for start in range(0, 1600, 40):
            rows = order[start : start + 40]
            loss = nn.functional.mse_loss(net(x[rows]), price[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        error = nn.functional.mse_loss(net(x_test), price_test).item()
    print(f"final error {error:.4f}")


if __name__ == "__main__":
    main()
