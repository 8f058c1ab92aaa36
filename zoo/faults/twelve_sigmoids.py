"""Twelve hidden layers with a sigmoid each: at most 0.25 of the gradient passes every one of them.

expects: F005
place: hidden.0
source: Hochreiter (1991); CS231n, "Neural Networks Part 1", on why not to use the sigmoid
kind: nonlinearity
shows: final loss lower
"""

import argparse
import itertools

import torch
from torch import nn
from torch.nn import functional as F

from traindx.datasets import fashion_mnist


class DeepNet(nn.Module):
    def __init__(self, activation, depth=12, width=48):
        super().__init__()
        self.activation = activation
        sizes = [784] + [width] * depth
        self.hidden = nn.ModuleList(nn.Linear(n, m) for n, m in itertools.pairwise(sizes))
        self.out = nn.Linear(width, 10)
        for layer in self.hidden:
            nn.init.xavier_normal_(layer.weight)

    def forward(self, x):
        for layer in self.hidden:
            x = self.activation(layer(x))
        return self.out(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    images = torch.from_numpy(data.train_images).float().flatten(1).sub(73.2).div(90.2)
    labels = torch.from_numpy(data.train_labels).long()

    net = DeepNet(torch.relu if args.healthy else torch.sigmoid)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(150):
        batch = torch.randint(len(images), (64,))
        loss = F.cross_entropy(net(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        print(f"final loss {F.cross_entropy(net(images), labels).item():.4f}")


if __name__ == "__main__":
    main()
