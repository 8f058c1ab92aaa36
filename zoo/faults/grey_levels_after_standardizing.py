"""Noise of twenty grey levels is added to images that have been standardized before.

expects: L010
place:
source: an augmentation moved behind the normalization
kind: data
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from traindx.datasets import fashion_mnist


class AddNoise:
    """Sensor noise, in grey levels."""

    def __init__(self, levels):
        self.levels = levels

    def __call__(self, image):
        return image + self.levels * torch.randn_like(image)


class Standardize:
    def __call__(self, image):
        return (image - 73.2) / 90.2


class Augmented(Dataset):
    def __init__(self, images, labels, transforms):
        self.images = torch.from_numpy(images).float().flatten(1)
        self.labels = torch.from_numpy(labels).long()
        self.transforms = transforms

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = self.images[i]
        for transform in self.transforms:
            image = transform(image)
        return image, self.labels[i]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    transforms = [Standardize(), AddNoise(20)]
    if args.healthy:
        transforms.reverse()
    train = Augmented(data.train_images, data.train_labels, transforms)
    test = Augmented(data.test_images, data.test_labels, [Standardize()])
    net = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    for epoch in range(2):
        for x, y in DataLoader(train, batch_size=64, shuffle=True):
            optimizer.zero_grad()
            loss = criterion(net(x), y)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        right = sum((net(x).argmax(1) == y).sum().item() for x, y in DataLoader(test, 250))
    print(f"final accuracy {right / len(test):.4f}")


if __name__ == "__main__":
    main()
