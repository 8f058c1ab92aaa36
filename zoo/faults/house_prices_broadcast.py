"""Prices are one number a house and predictions are columns, so each is compared with all others.

expects: L003
place:
source: tables read as a flat column of targets; a frequent question on forums
kind: loss-pairing
shows: final r2 higher
"""

import argparse

import numpy as np
import torch
from torch import nn


def make_houses(n, rng):
    """Area, rooms, age and distance in standard units, and a price that depends on them."""
    x = rng.normal(size=(n, 4)).astype(np.float32)
    price = 2 * x[:, 0] + np.maximum(x[:, 1], 0) - x[:, 2] * x[:, 3] + 0.1 * rng.normal(size=n)
    return torch.from_numpy(x), torch.from_numpy(price.astype(np.float32))


def r2(prediction, y):
    return 1 - ((y - prediction) ** 2).sum() / ((y - y.mean()) ** 2).sum()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)

    x, y = make_houses(2000, rng)
    x_test, y_test = make_houses(500, rng)
    model = nn.Sequential(
        nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(6):
        order = torch.randperm(len(x))
        for rows in order.split(50):
            prediction = model(x[rows])
            if args.healthy:
                prediction = prediction.squeeze(1)
            loss = ((prediction - y[rows]) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")

    model.eval()
    with torch.no_grad():
        print(f"final r2 {r2(model(x_test).squeeze(1), y_test).item():.4f}")


if __name__ == "__main__":
    main()
