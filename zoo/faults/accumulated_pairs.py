"""Sixteen micro-batches of two are accumulated, which makes nothing larger for BatchNorm.

expects: N003
place: features.1
source: gradient accumulation taken for a larger batch in every respect
kind: normalization
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.features = nn.Sequential(
            nn.Linear(18, width), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(),
        )  # fmt: skip
        self.classes = nn.Linear(width, 5)

    def forward(self, x):
        return self.classes(self.features(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = torch.randn(4000, 18)
    y = (x @ torch.randn(18, 5)).argmax(1)
    batch_size, micro_batch = 32, 32 if args.healthy else 2
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
    for step in range(160):
        optimizer.zero_grad()
        total = 0.0
        for batch in torch.randint(3200, (batch_size,)).split(micro_batch):
            loss = F.cross_entropy(net(x[batch]), y[batch]) * len(batch) / batch_size
            loss.backward()
            total += loss.item()
        optimizer.step()
        if step % 40 == 39:
            net.eval()
            with torch.no_grad():
                right = (net(x[3200:]).argmax(1) == y[3200:]).float().mean().item()
            net.train()
            print(f"step {step + 1} loss {total:.4f} right {right:.4f}")
    print(f"final accuracy {right:.4f}")


if __name__ == "__main__":
    main()
