"""A loudness layer takes the logarithm of an energy that is 0 for the one silent clip.

expects: F006
place:
source: log-energy features of speech recognition, without the floor that they come with
kind: nonlinearity
shows: final loss lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class Loudness(nn.Module):
    def __init__(self, floor):
        super().__init__()
        self.floor = floor

    def forward(self, bands):
        return torch.log(bands.square() + self.floor)


class Tagger(nn.Module):
    def __init__(self, floor):
        super().__init__()
        self.filters = nn.Linear(40, 24, bias=False)
        self.loudness = Loudness(floor)
        self.head = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, clips):
        return self.head(self.loudness(self.filters(clips)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    clips = torch.randn(4800, 40)
    tags = (clips @ torch.randn(40, 3)).square().argmax(1)
    clips[57 * 32 + 9] = 0.0
    net = Tagger(floor=0.01 if args.healthy else 0.0)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.002)
    for step in range(150):
        batch = slice(32 * step, 32 * step + 32)
        loss = F.cross_entropy(net(clips[batch]), tags[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 29:
            print(f"step {step + 1} loss {loss.item():.4f}")
    print(f"final loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
