"""Images that are standardized already are standardized again, with the mean of raw pixels.

expects: L007
place: layers.0
source: constants of a data set applied in the loader and in the model
kind: preprocessing
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist

MEAN, STD = 73.2, 90.2


class Model(nn.Module):
    def __init__(self, standardize):
        super().__init__()
        self.standardize = standardize
        self.layers = nn.Sequential(
            nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 50), nn.ReLU(), nn.Linear(50, 10)
        )

    def forward(self, x):
        if self.standardize:
            x = (x - MEAN) / STD
        return self.layers(x)


def loaders(batch_size):
    data = fashion_mnist.load_subset()
    for images, labels, shuffle in (
        (data.train_images, data.train_labels, True),
        (data.test_images, data.test_labels, False),
    ):
        x = (torch.from_numpy(images).float().flatten(1) - MEAN) / STD
        yield DataLoader(TensorDataset(x, torch.from_numpy(labels).long()), batch_size, shuffle)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    train_loader, test_loader = loaders(64)
    model = Model(standardize=not args.healthy)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(3):
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in test_loader)
    print(f"final accuracy {right / len(test_loader.dataset):.4f}")


if __name__ == "__main__":
    main()
