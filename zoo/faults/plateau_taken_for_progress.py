"""The schedule waits for the loss to grow, and cuts the rate whenever it falls.

expects: O005
place: Adam
source: mode="max" of ReduceLROnPlateau, made for an accuracy and given a loss
kind: schedule
shows: final loss lower
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        loss = nn.functional.cross_entropy(model(x), y).item()
    model.train()
    return loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    digits = load_digits()
    order = torch.randperm(len(digits.target))
    x = torch.tensor(digits.data).float()[order] / 8 - 1
    y = torch.tensor(digits.target)[order]
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    mode = "min" if args.healthy else "max"
    scheduler = ReduceLROnPlateau(optimizer, mode=mode, factor=0.1, patience=0)
    for epoch in range(8):
        for rows in torch.randperm(1400).split(35):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
        validation = evaluate(model, x[1400:], y[1400:])
        scheduler.step(validation)
        rate = optimizer.param_groups[0]["lr"]
        print(f"epoch {epoch + 1} validation loss {validation:.4f} next rate {rate:.1e}")
    print(f"final loss {validation:.4f}")


if __name__ == "__main__":
    main()
