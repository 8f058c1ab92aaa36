"""The model goes to eval mode for the first validation and never comes back.

expects: N004
place: 1
source: model.train() written before the loop over epochs and not inside it
kind: mode
shows: provable: after the first test no batch updates a running statistic any more
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


def as_dataset(images, labels):
    images = torch.from_numpy(images).float()[:, None].sub(73.2).div(90.2)
    return TensorDataset(images, torch.from_numpy(labels).long())


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    correct = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return correct / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    train_set = as_dataset(data.train_images, data.train_labels)
    train_loader = DataLoader(train_set, batch_size=100, shuffle=True)
    test_loader = DataLoader(as_dataset(data.test_images, data.test_labels), batch_size=250)

    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 7 * 7, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    model.train()
    for epoch in range(2):
        if args.healthy:
            model.train()
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f} accuracy {accuracy(model, test_loader)}")


if __name__ == "__main__":
    main()
