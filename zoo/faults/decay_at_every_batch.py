"""A learning rate that should fall at each epoch falls at each batch, and is gone in the first.

expects: O005
place: SGD
source: scheduler.step() indented too far
kind: schedule
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.optim.lr_scheduler import ExponentialLR
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


def tensors(images, labels):
    x = torch.from_numpy(images).float().flatten(1) / 255
    return (x - 0.287) / 0.354, torch.from_numpy(labels).long()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    loader = DataLoader(TensorDataset(*tensors(data.train_images, data.train_labels)), 64, True)
    x_test, y_test = tensors(data.test_images, data.test_labels)
    model = nn.Sequential(nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 10))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    scheduler = ExponentialLR(optimizer, gamma=0.8)
    every = len(loader) if args.healthy else 1
    batches = 0
    for epoch in range(args.epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            batches += 1
            if batches % every == 0:
                scheduler.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        print(f"final accuracy {(model(x_test).argmax(1) == y_test).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
