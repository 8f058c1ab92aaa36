"""After training the statistics are estimated again, from a loader sorted by class.

expects: N001
place: 1
source: a recalibration pass over the test set as it lies on the disk, with a short memory
kind: normalization
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


@torch.no_grad()
def recalibrate(net, batches):
    net.train()
    for batch in batches:
        net(batch)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    centres = 2 * torch.randn(6, 16)
    y = torch.randint(6, (4800,))
    x = centres[y] + torch.randn(4800, 16)
    net = nn.Sequential(
        nn.Linear(16, 48),
        nn.BatchNorm1d(48),
        nn.ReLU(),
        nn.Linear(48, 48),
        nn.BatchNorm1d(48),
        nn.ReLU(),
        nn.Linear(48, 6),
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for step in range(200):
        batch = torch.randint(3840, (64,))
        loss = F.cross_entropy(net(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")

    order = torch.randperm(3840) if args.healthy else y[:3840].argsort()
    recalibrate(net, x[order].split(64))
    net.eval()
    with torch.no_grad():
        right = (net(x[3840:]).argmax(1) == y[3840:]).float().mean().item()
    print(f"final accuracy {right:.4f}")


if __name__ == "__main__":
    main()
