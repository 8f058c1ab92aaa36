"""The dropout mask is drawn once, when the layer is made: the same neurons are dropped for good.

expects: E003
place: drop
source: a dropout of one's own that keeps its mask to save time
kind: mode
shows: provable: the neurons whose mask is 0 are 0 at every step, and none of their weights trains
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class CachedDropout(nn.Module):
    def __init__(self, size, p, renew):
        super().__init__()
        self.p = p
        self.renew = renew
        self.register_buffer("mask", self.draw(size))

    def draw(self, size):
        return (torch.rand(size) > self.p).float() / (1 - self.p)

    def forward(self, x):
        if not self.training:
            return x
        if self.renew:
            self.mask = self.draw(x.shape[1])
        return x * self.mask


class Net(nn.Module):
    def __init__(self, renew, width=24):
        super().__init__()
        self.first = nn.Linear(12, width)
        self.drop = CachedDropout(width, 0.5, renew)
        self.second = nn.Linear(width, 4)

    def forward(self, x):
        return self.second(self.drop(F.relu(self.first(x))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = torch.randn(4000, 12)
    y = (x @ torch.randn(12, 4)).square().argmax(1)
    net = Net(renew=args.healthy)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for step in range(300):
        batch = torch.randint(3000, (100,))
        loss = F.cross_entropy(net(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 99:
            net.eval()
            with torch.no_grad():
                right = (net(x[3000:]).argmax(1) == y[3000:]).float().mean().item()
            net.train()
            print(f"step {step + 1} loss {loss.item():.4f} right {right:.4f}")
    print(f"final accuracy {right:.4f}")


if __name__ == "__main__":
    main()
