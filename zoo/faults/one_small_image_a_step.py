"""A segmentation network trains on one image a step, whose deepest layer has four positions.

expects: N003
place: deep.1
source: high-resolution segmentation on a small card, with the BatchNorm of the paper
kind: normalization
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

SIZE = 8


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.near = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU())
        self.deep = nn.Sequential(
            nn.Conv2d(8, 32, 4, stride=4), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 32, 1), nn.BatchNorm2d(32), nn.ReLU(),
        )  # fmt: skip
        self.classify = nn.Conv2d(40, 2, 1)

    def forward(self, x):
        near = self.near(x)
        deep = F.interpolate(self.deep(near), size=near.shape[-2:])
        return self.classify(torch.cat([near, deep], dim=1))


def scans(count):
    """The bright pixels of a scan are foreground if the scan as a whole is dark."""
    pixels = torch.randn(count, 1, SIZE, SIZE)
    dark = torch.rand(count) < 0.5
    images = pixels + torch.where(dark, -1.5, 1.5)[:, None, None, None]
    return images, ((pixels[:, 0] > 0) & dark[:, None, None]).long()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    images, masks = scans(1200)
    batch_size = 32 if args.healthy else 1
    net = Segmenter()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for step in range(300):
        batch = torch.randint(1000, (batch_size,))
        loss = F.cross_entropy(net(images[batch]), masks[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 99:
            net.eval()
            with torch.no_grad():
                right = (net(images[1000:]).argmax(1) == masks[1000:]).float().mean().item()
            net.train()
            print(f"step {step + 1} loss {loss.item():.4f} right {right:.4f}")
    print(f"final accuracy {right:.4f}")


if __name__ == "__main__":
    main()
