"""GroupNorm with a group for every channel is given vectors: a number less itself is always 0.

expects: N012
place: body.1
source: num_groups and channels mistaken for each other behind a global average pooling
kind: normalization
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self, groups, width=48):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(12, width),
            nn.GroupNorm(groups, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
        )
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        return self.head(self.body(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = torch.randn(4096, 12)
    y = (x @ torch.randn(12, 3)).argmax(1)
    net = Net(groups=4 if args.healthy else 48)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for step in range(150):
        batch = torch.randint(3072, (64,))
        loss = F.cross_entropy(net(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        print(f"final accuracy {(net(x[3072:]).argmax(1) == y[3072:]).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
