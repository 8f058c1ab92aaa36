"""The images lie sorted by class on the disk, and the loader does not shuffle them.

expects: L018
place:
source: a missing shuffle=True on folders of images, one folder a class
kind: data
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


def folder_of_images(images, labels):
    """As an image folder lists them: class by class."""
    x = torch.from_numpy(images).float().flatten(1).sub(73.2).div(90.2)
    y = torch.from_numpy(labels).long()
    order = y.argsort(stable=True)
    return TensorDataset(x[order], y[order])


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.criterion = nn.CrossEntropyLoss()

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            losses = [self.training_step(batch) for batch in loader]
            print(f"epoch {epoch + 1} mean loss {sum(losses) / len(losses):.4f}")

    def training_step(self, batch):
        x, y = batch
        loss = self.criterion(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def accuracy(self, loader):
        return sum((self.model(x).argmax(1) == y).sum().item() for x, y in loader)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    train_set = folder_of_images(data.train_images, data.train_labels)
    test_set = folder_of_images(data.test_images, data.test_labels)
    trainer = Trainer(nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10)), lr=0.02)
    trainer.fit(DataLoader(train_set, batch_size=50, shuffle=args.healthy), epochs=3)
    right = trainer.accuracy(DataLoader(test_set, batch_size=100))
    print(f"final accuracy {right / len(test_set):.4f}")


if __name__ == "__main__":
    main()
