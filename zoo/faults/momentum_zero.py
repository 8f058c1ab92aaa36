"""The momentum of BatchNorm is set to zero, so that its statistics never leave their start.

expects: N004
place: conv.1
source: a setting named after the optimizer's momentum, of which a project wanted none
kind: normalization
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


class Model(nn.Module):
    def __init__(self, bn_momentum):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 10, 5, stride=3), nn.BatchNorm2d(10, momentum=bn_momentum), nn.ReLU()
        )
        self.fc = nn.Sequential(
            nn.Linear(640, 32), nn.BatchNorm1d(32, momentum=bn_momentum), nn.ReLU()
        )
        self.out = nn.Linear(32, 10)

    def forward(self, x):
        return self.out(self.fc(self.conv(x).flatten(1)))


def tensors(images, labels):
    return torch.from_numpy(images).float()[:, None] / 64, torch.from_numpy(labels).long()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    loader = DataLoader(
        TensorDataset(*tensors(data.train_images, data.train_labels)), 100, shuffle=True
    )
    x, y = tensors(data.test_images, data.test_labels)
    model = Model(bn_momentum=0.1 if args.healthy else 0.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        model.train()
        for inputs, targets in loader:
            loss = nn.functional.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(x).argmax(1) == y).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.4f} accuracy {accuracy:.4f}")
    print(f"final accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
