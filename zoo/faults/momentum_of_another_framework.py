"""A BatchNorm momentum was ported from Keras as the weight of the new value, and is far too small.

expects: N002
place: norm1
source: Keras documents momentum as the weight of the old value, PyTorch as that of the new one
kind: normalization
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


class ConvNet(nn.Module):
    def __init__(self, momentum):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, stride=2, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(8, momentum=momentum)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(16, momentum=momentum)
        self.head = nn.Linear(16 * 7 * 7, 10)

    def forward(self, x):
        x = torch.relu(self.norm1(self.conv1(x)))
        x = torch.relu(self.norm2(self.conv2(x)))
        return self.head(x.flatten(1))


def as_dataset(images, labels):
    images = torch.from_numpy(images).float()[:, None].div(255)
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
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    test_loader = DataLoader(as_dataset(data.test_images, data.test_labels), batch_size=250)

    model = ConvNet(momentum=0.1 if args.healthy else 0.001)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(2):
        model.train()
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f} accuracy {accuracy(model, test_loader)}")
    print(f"final accuracy {accuracy(model, test_loader):.4f}")


if __name__ == "__main__":
    main()
