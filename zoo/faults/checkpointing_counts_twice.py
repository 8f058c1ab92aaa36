"""Activation checkpointing runs BatchNorm again in backward, and so each batch is averaged twice.

expects: N005
place: blocks.0.norm
source: an open issue of PyTorch on torch.utils.checkpoint and running statistics
kind: normalization
shows: provable: num_batches_tracked grows by two a step, a memory half as long as meant
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, 5, padding=2, bias=False)
        self.norm = nn.BatchNorm1d(channels)

    def forward(self, x):
        return x + F.relu(self.norm(self.conv(x)))


class SignalNet(nn.Module):
    def __init__(self, channels=16, depth=3, save_memory=True):
        super().__init__()
        self.save_memory = save_memory
        self.lift = nn.Conv1d(1, channels, 7, padding=3)
        self.blocks = nn.ModuleList(Block(channels) for _ in range(depth))
        self.head = nn.Linear(channels, 3)

    def forward(self, x):
        x = self.lift(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.save_memory else block(x)
        return self.head(x.mean(2))


def waves(count, length=64):
    """Noisy sine, square and saw-tooth waves."""
    kind = torch.randint(3, (count,))
    phase = torch.rand(count, 1) * 6.28
    t = torch.linspace(0, 12, length) + phase
    shapes = torch.stack([t.sin(), t.sin().sign(), (t / 6.28) % 1 * 2 - 1])
    x = shapes[kind, torch.arange(count)] + 0.4 * torch.randn(count, length)
    return x[:, None], kind


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x, y = waves(1600)
    net = SignalNet(save_memory=not args.healthy)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(3):
        net.train()
        for batch in torch.randperm(1280).split(64):
            loss = F.cross_entropy(net(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            right = (net(x[1280:]).argmax(1) == y[1280:]).float().mean().item()
        counted = net.blocks[0].norm.num_batches_tracked.item()
        print(f"epoch {epoch} loss {loss.item():.4f} right {right:.4f} batches {counted}")


if __name__ == "__main__":
    main()
