"""Accuracy takes the best sample of each class instead of the best class of each sample.

expects: E005
place:
source: an argmax over the wrong axis, in a metric that then looks like chance
kind: loop
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


def accuracy(scores, labels, axis):
    guess = scores.argmax(axis)
    return (guess == labels).float().mean().item()


def evaluate(model, loader, axis):
    model.eval()
    with torch.no_grad():
        parts = [accuracy(model(x), y, axis) for x, y in loader]
    model.train()
    return sum(parts) / len(parts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    sets = []
    for images, labels in (
        (data.train_images, data.train_labels),
        (data.test_images, data.test_labels),
    ):
        x = torch.from_numpy(images).float().flatten(1).sub(73.2).div(90.2)
        sets.append(TensorDataset(x, torch.from_numpy(labels).long()))
    train_loader = DataLoader(sets[0], batch_size=64, shuffle=True)
    test_loader = DataLoader(sets[1], batch_size=10)

    model = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    axis = 1 if args.healthy else 0
    for epoch in range(3):
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    print(f"final accuracy {evaluate(model, test_loader, axis):.4f}")


if __name__ == "__main__":
    main()
