"""SGD with warm restarts, stepped by fractions of an epoch; keeps the weights of each valley.

The predictions of the three snapshots are averaged.

Expected: ensemble accuracy > 0.76 (chance is 0.10).
"""

import argparse
import copy

import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


def make_net(width):
    return nn.Sequential(
        nn.Linear(784, width),
        nn.BatchNorm1d(width),
        nn.ReLU(),
        nn.Linear(width, 10),
    )


def run(seed, width=80, cycles=3):
    torch.manual_seed(seed)
    data = fashion_mnist.load_subset()
    x = torch.tensor(data.train_images).flatten(1).float().div(255).sub(0.287).div(0.354)
    t = torch.tensor(data.test_images).flatten(1).float().div(255).sub(0.287).div(0.354)
    loader = DataLoader(
        TensorDataset(x, torch.tensor(data.train_labels).long()), batch_size=100, shuffle=True
    )
    test_labels = torch.tensor(data.test_labels).long()
    net = make_net(width)
    optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    scheduler = optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=1)
    snapshots = []
    for epoch in range(cycles):
        net.train()
        for i, (images, labels) in enumerate(loader):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(images), labels)
            loss.backward()
            optimizer.step()
            scheduler.step(epoch + (i + 1) / len(loader))
        snapshots.append(copy.deepcopy(net).eval())
        with torch.no_grad():
            accuracy = (snapshots[-1](t).argmax(1) == test_labels).float().mean()
        print(f"cycle {epoch}: loss {loss:.4f}, accuracy {accuracy:.4f}")
    with torch.no_grad():
        probabilities = torch.stack([s(t).softmax(1) for s in snapshots]).mean(0)
    accuracy = (probabilities.argmax(1) == test_labels).float().mean().item()
    print(f"ensemble accuracy: {accuracy:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--width", type=int, default=80)
    args = parser.parse_args()
    run(args.seed, args.width)
