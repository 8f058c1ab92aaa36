"""A hinge loss is given labels 0 and 1 where it needs -1 and 1, so the zeros teach nothing.

expects: L003
place:
source: a support vector loss written after a formula, on labels of another convention
kind: loss-pairing
shows: final accuracy higher
"""

import argparse

import torch
from sklearn.datasets import load_wine
from torch import nn


def hinge(score, label):
    return torch.clamp(1 - label * score, min=0).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    wine = load_wine()
    order = torch.randperm(len(wine.target))
    x = torch.tensor(wine.data).float()[order]
    y = torch.tensor(wine.target == 1).float()[order]
    x = (x - x[:120].mean(0)) / x[:120].std(0)
    side = 2 * y - 1 if args.healthy else y

    model = nn.Sequential(nn.Linear(13, 16), nn.Tanh(), nn.Linear(16, 1), nn.Flatten(0))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    for epoch in range(30):
        for rows in torch.randperm(120).split(20):
            loss = hinge(model(x[rows]), side[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1} hinge {loss.item():.4f}")
    with torch.no_grad():
        right = (model(x[120:]) > 0) == (y[120:] == 1)
    print(f"final accuracy {right.float().mean().item():.4f}")


if __name__ == "__main__":
    main()
