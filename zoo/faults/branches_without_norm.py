"""Residual branches have no normalization, so what is added doubles the stream at every block.

expects: N013
place: blocks
source: Zhang et al., "Fixup initialization: residual learning without normalization" (2019)
kind: architecture
shows: final loss lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, dim, norm):
        super().__init__()
        self.norm = nn.LayerNorm(dim) if norm else nn.Identity()
        self.up = nn.Linear(dim, 2 * dim)
        self.down = nn.Linear(2 * dim, dim)
        for linear in (self.up, self.down):
            nn.init.kaiming_normal_(linear.weight)

    def forward(self, x):
        return x + self.down(F.relu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self, norm, dim=32, depth=14):
        super().__init__()
        self.lift = nn.Linear(10, dim)
        self.blocks = nn.Sequential(*(Block(dim, norm) for _ in range(depth)))
        self.head = nn.Linear(dim, 4)

    def forward(self, x):
        return self.head(self.blocks(self.lift(x)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = torch.randn(3000, 10)
    y = (x @ torch.randn(10, 4)).argmax(1)
    net = Net(norm=args.healthy)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4)
    recent = []
    for step in range(120):
        batch = torch.randint(len(x), (64,))
        loss = F.cross_entropy(net(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        recent = [*recent[-29:], loss.item()]
        if step % 30 == 29:
            print(f"step {step + 1} loss {loss.item():.4f}")
    print(f"final loss {sum(recent) / len(recent):.4f}")


if __name__ == "__main__":
    main()
