"""Learns five hundred images by heart, as one does to see that a model can learn at all.

Expected: training accuracy > 0.99 (the test accuracy stays behind).
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

from traindx.datasets import fashion_mnist


def as_dataset(images, labels):
    images = (torch.from_numpy(images).float().unsqueeze(1) - 73.2) / 90.2
    return TensorDataset(images, torch.from_numpy(labels).long())


def accuracy(model, dataset):
    correct = 0
    with torch.no_grad():
        for x, y in DataLoader(dataset, batch_size=250):
            correct += int((model(x).argmax(1) == y).sum())
    return correct / len(dataset)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--max-epochs", type=int, default=40)
    parser.add_argument("--width", type=int, default=200)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    data = fashion_mnist.load_subset()
    small = Subset(as_dataset(data.train_images, data.train_labels), range(args.count))
    loader = DataLoader(small, batch_size=50, shuffle=True)
    model = nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, args.width),
        nn.ReLU(),
        nn.Linear(args.width, args.width),
        nn.ReLU(),
        nn.Linear(args.width, 10),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.max_epochs):
        for x, y in loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 5 == 4:
            train_accuracy = accuracy(model, small)
            print(f"epoch {epoch + 1}: loss {loss.item():.5f} accuracy {train_accuracy:.4f}")
    test = accuracy(model, as_dataset(data.test_images, data.test_labels))
    print(f"test accuracy: {test:.4f}")
    print(f"training accuracy: {accuracy(model, small):.4f}")
