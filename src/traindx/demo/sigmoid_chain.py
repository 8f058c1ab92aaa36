"""Trains a deep sigmoid network on Fashion-MNIST."""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist

DEPTH = 20
WIDTH = 64


def build_model():
    """Twenty hidden layers with a sigmoid each, then one logit a class."""
    layers = [nn.Flatten()]
    width = 28 * 28
    for _ in range(DEPTH):
        layers += [nn.Linear(width, WIDTH), nn.Sigmoid()]
        width = WIDTH
    return nn.Sequential(*layers, nn.Linear(width, 10))


def as_dataset(images, labels):
    """Images scaled to [0, 1] with a channel axis, and their labels."""
    return TensorDataset(torch.tensor(images[:, None] / 255).float(), torch.tensor(labels).long())


def accuracy(model, loader):
    """Share of the loader's images that are classified right."""
    model.eval()
    correct = total = 0
    with torch.no_grad():
        for images, labels in loader:
            correct += int((model(images).argmax(1) == labels).sum())
            total += len(labels)
    return correct / total


def main():
    """Trains and prints loss and test accuracy after every epoch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", metavar="PATH", help="write the trained weights here")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    data = fashion_mnist.load_subset()
    train_set = as_dataset(data.train_images, data.train_labels)
    train_loader = DataLoader(train_set, batch_size=128, shuffle=True)
    test_loader = DataLoader(as_dataset(data.test_images, data.test_labels), batch_size=250)

    model = build_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, args.epochs + 1):
        model.train()
        total_loss = 0.0
        for images, labels in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            total_loss += loss.item()
        mean_loss = total_loss / len(train_loader)
        print(
            f"epoch {epoch}: loss {mean_loss:.4f}, test accuracy {accuracy(model, test_loader):.3f}"
        )

    if args.save:
        torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
