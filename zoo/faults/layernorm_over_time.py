"""LayerNorm is put behind a convolution over time, and normalizes time instead of channels.

expects: N006
place: norm1
source: nn.LayerNorm, which takes the last axis, and nn.Conv1d, whose channels are on axis 1
kind: normalization
shows: final error lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

LENGTH = 40


class ChannelNorm(nn.LayerNorm):
    """Over the channels of each moment."""

    def forward(self, x):
        return super().forward(x.transpose(1, 2)).transpose(1, 2)


class Loudness(nn.Module):
    """Says how loud a recording is."""

    def __init__(self, over_channels, channels=24):
        super().__init__()
        size, norm = (channels, ChannelNorm) if over_channels else (LENGTH, nn.LayerNorm)
        self.conv1 = nn.Conv1d(2, channels, 5, padding=2)
        self.norm1 = norm(size)
        self.conv2 = nn.Conv1d(channels, channels, 5, padding=2)
        self.norm2 = norm(size)
        self.head = nn.Linear(channels, 1)

    def forward(self, x):
        x = F.gelu(self.norm1(self.conv1(x)))
        x = F.gelu(self.norm2(self.conv2(x)))
        return self.head(x.mean(2))[:, 0]


def recordings(count):
    loud = torch.rand(count) * 2 - 1
    level = torch.tensor([1.0, 0.0])[None, :, None] + torch.zeros(count, 2, LENGTH)
    level[:, 1] = loud[:, None]
    return level + 0.3 * torch.randn(count, 2, LENGTH), loud


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x, y = recordings(2400)
    model = Loudness(over_channels=args.healthy)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(120):
        batch = torch.randint(2000, (50,))
        loss = F.mse_loss(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 39:
            print(f"step {step + 1} loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        print(f"final error {(model(x[2000:]) - y[2000:]).abs().mean().item():.4f}")


if __name__ == "__main__":
    main()
