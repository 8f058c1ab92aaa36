"""Frozen BatchNorm layers know standardized images, and are given raw pixels from 0 to 255.

expects: N017
place: features.1
source: a pretrained backbone used without the preprocessing that it was trained with
kind: normalization
shows: final loss lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

from traindx.datasets import fashion_mnist

MEAN, STD = 73.2, 90.2


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.head = nn.Linear(16 * 7 * 7, classes)

    def forward(self, x):
        return self.head(self.features(x))


def fit(net, images, labels, steps):
    params = [param for param in net.parameters() if param.requires_grad]
    optimizer = torch.optim.SGD(params, lr=0.01, momentum=0.9)
    for _ in range(steps):
        batch = torch.randint(len(images), (64,))
        loss = F.cross_entropy(net(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    images = torch.from_numpy(data.train_images).float()[:, None]
    labels = torch.from_numpy(data.train_labels).long()
    early = labels < 5

    net = Net(5)
    net.train()
    loss = fit(net, (images[early] - MEAN) / STD, labels[early], 80)
    print(f"pretrained on five kinds, loss {loss:.4f}")

    net.features.requires_grad_(False)
    net.head = nn.Linear(16 * 7 * 7, 5)
    net.eval()
    late, kinds = images[~early], labels[~early] - 5
    test_images = torch.from_numpy(data.test_images).float()[:, None]
    if args.healthy:
        late, test_images = (late - MEAN) / STD, (test_images - MEAN) / STD
    loss = fit(net, late, kinds, 60)
    print(f"the other five, loss {loss:.4f}")

    test_labels = torch.from_numpy(data.test_labels).long()
    chosen = test_labels >= 5
    with torch.no_grad():
        scores = net(test_images[chosen])
        test_loss = F.cross_entropy(scores, test_labels[chosen] - 5).item()
        right = (scores.argmax(1) == test_labels[chosen] - 5).float().mean().item()
    print(f"accuracy {right:.4f}")
    print(f"final loss {test_loss:.4f}")


if __name__ == "__main__":
    main()
