"""Trains a small convolutional network on Fashion-MNIST."""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


def conv_bn_relu(in_channels, out_channels):
    """A convolution that halves the image, normalized and rectified."""
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(out_channels, momentum=0.1),
        nn.ReLU(inplace=True),
    )


def build_model():
    """Three convolutions and a linear classifier."""
    return nn.Sequential(
        conv_bn_relu(1, 16),
        conv_bn_relu(16, 32),
        conv_bn_relu(32, 64),
        nn.Flatten(),
        nn.Linear(64 * 4 * 4, 10),
    )


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


def train_epoch(model, loader, optimizer):
    """One pass over the training images; returns mean loss and training accuracy."""
    model.train()
    total_loss = 0.0
    correct = total = 0
    for images, labels in loader:
        optimizer.zero_grad()
        logits = model(images)
        loss = F.cross_entropy(logits, labels)
        loss.backward()
        optimizer.step()
        total_loss += loss.item()
        correct += int((logits.argmax(1) == labels).sum())
        total += len(labels)
    return total_loss / len(loader), correct / total


def main():
    """Trains and prints loss, training and test accuracy after every epoch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", metavar="PATH", help="write the trained weights here")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    data = fashion_mnist.load_subset()
    train_set = as_dataset(data.train_images, data.train_labels)
    train_loader = DataLoader(train_set, batch_size=128, shuffle=True)
    test_loader = DataLoader(as_dataset(data.test_images, data.test_labels), batch_size=250)

    model = build_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(1, args.epochs + 1):
        loss, train_accuracy = train_epoch(model, train_loader, optimizer)
        print(
            f"epoch {epoch}: loss {loss:.4f}, train accuracy {train_accuracy:.3f}, "
            f"test accuracy {accuracy(model, test_loader):.3f}"
        )

    if args.save:
        torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
