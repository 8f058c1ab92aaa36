"""Weights are drawn from a normal distribution of deviation one, whatever the width.

expects: F002
place:
source: torch.randn for weights of layers of one's own
kind: init
shows: final accuracy higher
"""

import argparse
import itertools

import torch
from torch import nn
from torch.nn import functional as F

from traindx.datasets import fashion_mnist


class Dense(nn.Module):
    def __init__(self, inputs, outputs, scale):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) * scale)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


def mlp(widths, healthy):
    layers = []
    for a, b in itertools.pairwise(widths):
        layers.append(Dense(a, b, (2 / a) ** 0.5 if healthy else 1.0))
        layers.append(nn.ReLU())
    return nn.Sequential(*layers[:-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    x = torch.from_numpy(data.train_images).float().flatten(1).sub(73.2).div(90.2)
    x_test = torch.from_numpy(data.test_images).float().flatten(1).sub(73.2).div(90.2)
    y, y_test = torch.tensor(data.train_labels).long(), torch.tensor(data.test_labels).long()
    model = mlp([784, 128, 128, 64, 10], args.healthy)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(150):
        batch = torch.randint(len(x), (64,))
        loss = F.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    with torch.no_grad():
        print(f"final accuracy {(model(x_test).argmax(1) == y_test).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
