"""Twelve tanh layers start with weights too small by a factor of five: gradients fade on the way.

expects: G001
place: 0
source: a fixed standard deviation copied from a network of another width (Glorot & Bengio 2010)
kind: init
shows: final loss lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


def build(gain):
    layers = []
    for i in range(12):
        linear = nn.Linear(20 if i == 0 else 32, 32)
        nn.init.xavier_normal_(linear.weight, gain)
        layers += [linear, nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(32, 3))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    inputs = torch.randn(2048, 20)
    labels = (inputs @ torch.randn(20, 3)).argmax(1)
    net = build(gain=5 / 3 if args.healthy else 1 / 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for step in range(150):
        batch = torch.randint(len(inputs), (16,))
        loss = F.cross_entropy(net(inputs[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        print(f"final loss {F.cross_entropy(net(inputs), labels).item():.4f}")


if __name__ == "__main__":
    main()
