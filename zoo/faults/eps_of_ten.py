"""The eps of LayerNorm was typed as 1e1, not 1e-1 or less, and takes the place of the variance.

expects: N010
place: blocks.0.norm
source: a configuration file with a lost minus sign
kind: normalization
shows: final loss lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

CONFIG = {"dim": 32, "depth": 6, "eps": 1e1}


class Block(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.up = nn.Linear(dim, 2 * dim)
        self.down = nn.Linear(2 * dim, dim)
        self.norm = nn.LayerNorm(dim, eps=eps)

    def forward(self, x):
        return self.norm(self.down(F.gelu(self.up(x))))


class Net(nn.Module):
    def __init__(self, dim, depth, eps):
        super().__init__()
        self.lift = nn.Linear(10, dim)
        self.blocks = nn.ModuleList(Block(dim, eps) for _ in range(depth))
        self.head = nn.Linear(dim, 5)

    def forward(self, x):
        x = self.lift(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    config = CONFIG | {"eps": 1e-5} if args.healthy else CONFIG
    x = torch.randn(3000, 10)
    y = (x @ torch.randn(10, 5)).argmax(1)
    net = Net(**config)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-4)
    recent = []
    for step in range(160):
        batch = torch.randint(len(x), (64,))
        loss = F.cross_entropy(net(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        recent = [*recent[-19:], loss.item()]
        if step % 40 == 39:
            print(f"step {step + 1} loss {loss.item():.4f}")
    print(f"final loss {sum(recent) / len(recent):.4f}")


if __name__ == "__main__":
    main()
