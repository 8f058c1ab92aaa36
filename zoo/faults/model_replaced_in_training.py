"""The network goes on as a copy of its best state, and the optimizer holds the one before.

expects: O003
place: 0.weight
source: copy.deepcopy to go back to the best epoch so far, with the optimizer made once
kind: checkpoint
shows: final loss lower
"""

import argparse
import copy

import torch
from sklearn.datasets import load_digits
from torch import nn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    digits = load_digits()
    pixels = torch.tensor(digits.data, dtype=torch.float32).sub(4.88).div(6.02)
    labels = torch.tensor(digits.target)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(8):
        for batch in torch.randperm(len(pixels)).split(64):
            loss = criterion(model(pixels[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            total = criterion(model(pixels), labels).item()
        print(f"epoch {epoch} loss {total:.4f}")
        if epoch == 0:
            best = model if args.healthy else copy.deepcopy(model)
            model = best
    print(f"final loss {total:.4f}")


if __name__ == "__main__":
    main()
