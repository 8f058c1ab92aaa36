"""Currents in amperes, some millionths of one: eps is larger than their variance, and rules it.

expects: N010
place: norm
source: the eps of 1e-5 that is right for numbers of size 1, on data in another unit
kind: normalization
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.norm = nn.BatchNorm1d(16)
        self.net = nn.Sequential(
            nn.Linear(16, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4)
        )

    def forward(self, currents):
        return self.net(self.norm(currents))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    microamperes = 20 * torch.randn(4000, 16)
    kind = (microamperes @ torch.randn(16, 4)).argmax(1)
    currents = microamperes if args.healthy else microamperes * 1e-6
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(4):
        net.train()
        for batch in torch.randperm(3200).split(64):
            loss = F.cross_entropy(net(currents[batch]), kind[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            right = (net(currents[3200:]).argmax(1) == kind[3200:]).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.4f} right {right:.4f}")
    print(f"final accuracy {right:.4f}")


if __name__ == "__main__":
    main()
