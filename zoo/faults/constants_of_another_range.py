"""Mean and deviation of images between 0 and 1 are applied to images between 0 and 255.

expects: L007
place: stem
source: the constants of a well-known data set, copied without the division before them
kind: preprocessing
shows: final accuracy higher
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn


class Colours(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 12, 3, stride=2, padding=1)
        self.mix = nn.Conv2d(12, 24, 3, stride=2, padding=1)
        self.head = nn.Linear(24, 4)

    def forward(self, x):
        x = F.relu(self.stem(x))
        x = F.relu(self.mix(x))
        return self.head(x.mean((2, 3)))


def pictures(n):
    """Stripes in four directions, in colour, as bytes."""
    kind = torch.randint(4, (n,))
    row, column = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    waves = torch.stack((row, column, row + column, row - column))
    stripes = torch.sin(waves[kind] * 1.6 + 6.28 * torch.rand(n, 1, 1))
    colour = torch.rand(n, 3, 1, 1)
    image = 128 + 70 * stripes[:, None] * colour + 25 * torch.randn(n, 3, 16, 16)
    return image.clamp(0, 255).to(torch.uint8), kind


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    mean = torch.tensor([0.485, 0.456, 0.406])[:, None, None]
    std = torch.tensor([0.229, 0.224, 0.225])[:, None, None]
    white = 255 if args.healthy else 1

    def preprocess(images):
        return (images.float() / white - mean) / std

    images, kinds = pictures(1500)
    model = Colours()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(6):
        for batch in torch.randperm(1200).split(40):
            loss = F.cross_entropy(model(preprocess(images[batch])), kinds[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        right = model(preprocess(images[1200:])).argmax(1) == kinds[1200:]
    print(f"final accuracy {right.float().mean().item():.4f}")


if __name__ == "__main__":
    main()
