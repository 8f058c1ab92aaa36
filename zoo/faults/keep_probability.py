"""A probability of keeping, 0.9, was passed to a layer that takes the probability of dropping.

expects: E008
place: classifier.2
source: keep_prob of TensorFlow 1, which became rate, against p of PyTorch
kind: mode
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


class Net(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 5, stride=3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
        )
        self.classifier = nn.Sequential(
            nn.Linear(8 * 4 * 4, 64), nn.ReLU(), nn.Dropout(p), nn.Linear(64, 10)
        )

    def forward(self, x):
        return self.classifier(self.features(x))


def tensors(images, labels):
    return (torch.from_numpy(images).float()[:, None] / 255 - 0.287) / 0.354, torch.from_numpy(
        labels
    ).long()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    train_set = TensorDataset(*tensors(data.train_images, data.train_labels))
    test_images, test_labels = tensors(data.test_images, data.test_labels)
    net = Net(p=0.1 if args.healthy else 0.9)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(3):
        net.train()
        for x, y in DataLoader(train_set, batch_size=64, shuffle=True):
            optimizer.zero_grad()
            loss = loss_fn(net(x), y)
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            accuracy = (net(test_images).argmax(1) == test_labels).float().mean().item()
        print(f"epoch {epoch + 1} loss {loss.item():.4f} accuracy {accuracy:.4f}")
    print(f"final accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
