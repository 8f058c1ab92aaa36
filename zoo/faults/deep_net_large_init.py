"""The weights of a deep network start too large for its depth, and gradients explode on their way.

expects: G002
place: layers.0
source: weights drawn with a fixed standard deviation, whatever the width (Glorot & Bengio 2010)
kind: init
shows: final loss lower
"""

import argparse
import math

import torch
from torch import nn
from torch.nn import functional as F


class DeepNet(nn.Module):
    def __init__(self, std, features=20, width=48, depth=10):
        super().__init__()
        sizes = [features] + [width] * depth
        self.layers = nn.ModuleList(nn.Linear(sizes[i], sizes[i + 1]) for i in range(depth))
        self.head = nn.Linear(width, 3)
        for layer in self.layers:
            nn.init.normal_(layer.weight, std=std)

    def forward(self, x):
        for layer in self.layers:
            x = F.relu(layer(x))
        return self.head(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    inputs = torch.randn(2048, 20)
    labels = (inputs @ torch.randn(20, 3)).argmax(1)
    net = DeepNet(std=math.sqrt(2 / 48) if args.healthy else 0.5)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
    for step in range(100):
        batch = torch.randint(len(inputs), (64,))
        loss = F.cross_entropy(net(inputs[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            print(f"step {step + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        print(f"final loss {F.cross_entropy(net(inputs), labels).item():.4f}")


if __name__ == "__main__":
    main()
