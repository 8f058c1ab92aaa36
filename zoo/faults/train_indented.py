"""net.train() stands in the loop of the evaluation: all batches but the first are in train mode.

expects: E001
place:
source: a line that was indented too far
kind: mode
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


def build():
    return nn.Sequential(
        nn.Linear(18, 128),
        nn.BatchNorm1d(128),
        nn.ReLU(),
        nn.Linear(128, 128),
        nn.BatchNorm1d(128),
        nn.ReLU(),
        nn.Linear(128, 6),
    )


@torch.no_grad()
def evaluate(net, x, y, healthy):
    net.eval()
    right = 0
    for inputs, labels in zip(x.split(64), y.split(64), strict=True):
        right += (net(inputs).argmax(1) == labels).sum().item()
        if not healthy:
            net.train()
    if healthy:
        net.train()
    return right / len(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = 3 * torch.randn(4096, 18) + 1
    y = (x @ torch.randn(18, 6)).square().argmax(1)
    net = build()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(5):
        net.train()
        for batch in torch.randperm(3072).split(64):
            loss = F.cross_entropy(net(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        right = evaluate(net, x[3072:], y[3072:], args.healthy)
        print(f"epoch {epoch + 1} loss {loss.item():.4f} right {right:.4f}")
    print(f"final accuracy {right:.4f}")


if __name__ == "__main__":
    main()
