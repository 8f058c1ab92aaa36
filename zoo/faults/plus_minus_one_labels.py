"""The labels are +1 and -1, and the logistic loss that takes them expects 0 and 1.

expects: L003
place:
source: labels of a support vector machine given to a network
kind: loss-pairing
shows: final loss lower
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn


def spam(count):
    """Word counts of messages and whether they are spam, which is +1."""
    x = torch.poisson(torch.full((count, 20), 0.7))
    score = x[:, :4].sum(1) - x[:, 4:8].sum(1) + 0.5 * torch.randn(count)
    return x, torch.where(score > 0.5, 1.0, -1.0)


def train(model, x, y, epochs=6):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
    for epoch in range(epochs):
        for rows in torch.randperm(len(x)).split(50):
            loss = F.binary_cross_entropy_with_logits(model(x[rows])[:, 0], y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x, y = spam(1500)
    x_test, y_test = spam(500)
    model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 1))
    train(model, x, (y + 1) / 2 if args.healthy else y)
    with torch.no_grad():
        loss = F.softplus(-y_test * model(x_test)[:, 0]).mean()
    print(f"final loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
