"""Five linear layers stand one behind the other, and two spirals cannot be told apart by a line.

expects: S001
place:
source: missing activations, among the most frequent kinds in taxonomies of deep learning faults
kind: nonlinearity
shows: final accuracy higher
"""

import argparse
import math

import torch
from torch import nn


def spirals(n):
    turn = torch.rand(n).sqrt() * 2.2 * math.pi
    arm = torch.randint(2, (n,))
    angle = turn + arm * math.pi
    points = torch.stack((angle.cos(), angle.sin()), 1) * turn[:, None] / 4
    return points + 0.04 * torch.randn(n, 2), arm


def network(widths, activation):
    layers = []
    for i in range(len(widths) - 1):
        layers.append(nn.Linear(widths[i], widths[i + 1]))
        if activation is not None and i < len(widths) - 2:
            layers.append(activation())
    return nn.Sequential(*layers)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    points, arms = spirals(2000)
    test_points, test_arms = spirals(500)
    net = network([2, 64, 64, 64, 2], nn.ReLU if args.healthy else None)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(15):
        for batch in torch.randperm(2000).split(100):
            loss = criterion(net(points[batch]), arms[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        accuracy = (net(test_points).argmax(1) == test_arms).float().mean().item()
    print(f"final accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
