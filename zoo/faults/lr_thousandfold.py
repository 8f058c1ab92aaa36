"""The learning rate is a thousand times too high, a unit of the sweep that was read as another.

expects: O001
place:
source: CS231n, "Neural Networks Part 3", on the ratio of updates to weights
kind: optimizer
shows: final loss lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

from traindx.datasets import fashion_mnist


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    images = torch.from_numpy(data.train_images).float().flatten(1).sub(73.2).div(90.2)
    labels = torch.from_numpy(data.train_labels).long()

    net = nn.Sequential(
        nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)
    )
    lr = 0.05 if args.healthy else 50.0
    optimizer = torch.optim.SGD(net.parameters(), lr=lr)
    for step in range(120):
        batch = torch.randint(len(images), (64,))
        loss = F.cross_entropy(net(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            print(f"step {step + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        print(f"final loss {F.cross_entropy(net(images), labels).item():.4f}")


if __name__ == "__main__":
    main()
