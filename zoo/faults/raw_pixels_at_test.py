"""Training images are standardized, and the test images are not.

expects: E013
place:
source: a transform given to one of two loaders
kind: preprocessing
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from traindx.datasets import fashion_mnist


def standardize(image):
    return (image - 0.287) / 0.354


class Clothes(Dataset):
    def __init__(self, images, labels, transform=None):
        self.images = torch.from_numpy(images).float().flatten(1) / 255
        self.labels = torch.from_numpy(labels).long()
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index]
        if self.transform is not None:
            image = self.transform(image)
        return image, self.labels[index]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    train_set = Clothes(data.train_images, data.train_labels, transform=standardize)
    test_transform = standardize if args.healthy else None
    test_set = Clothes(data.test_images, data.test_labels, transform=test_transform)
    model = nn.Sequential(nn.Linear(784, 80), nn.ReLU(), nn.Dropout(0.1), nn.Linear(80, 10))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(2):
        model.train()
        for x, y in DataLoader(train_set, batch_size=64, shuffle=True):
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        model.eval()
        right = 0
        with torch.no_grad():
            for x, y in DataLoader(test_set, batch_size=100):
                right += (model(x).argmax(1) == y).sum().item()
        print(f"loss {loss.item():.4f} test accuracy {right / len(test_set):.4f}")
    print(f"final accuracy {right / len(test_set):.4f}")


if __name__ == "__main__":
    main()
