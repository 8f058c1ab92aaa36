"""Linear layers alternate with BatchNorm, which is linear in evaluation, and have no activation.

expects: S001
place:
source: a block of three operations, of which the last was lost
kind: nonlinearity
shows: final accuracy higher
"""

import argparse
import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def blocks(widths, act):
    for a, b in itertools.pairwise(widths):
        yield nn.Linear(a, b, bias=False)
        yield nn.BatchNorm1d(b)
        if act:
            yield nn.ReLU()


def same_sign(n):
    x = torch.randn(n, 10)
    return x, (x[:, 0] * x[:, 1] > 0).long()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    train = DataLoader(TensorDataset(*same_sign(3200)), batch_size=64, shuffle=True)
    x_test, y_test = same_sign(600)
    model = nn.Sequential(*blocks([10, 48, 48], act=args.healthy), nn.Linear(48, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(5):
        model.train()
        for x, y in train:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
        print(f"epoch {epoch + 1} loss {loss.item():.4f} accuracy {accuracy:.4f}")
    print(f"final accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
