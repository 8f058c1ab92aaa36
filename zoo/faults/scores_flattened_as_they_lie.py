"""The scores of all pixels are put in one list without moving the classes to the end before.

expects: F013
place:
source: a segmentation loss on flattened tensors; view(-1, classes) of channels-first scores
kind: loss-pairing
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn

GROUNDS = 3


def maps(n):
    """Fields of 4x4 pixels, each of one of three grounds, seen through noise."""
    ground = torch.randint(GROUNDS, (n, 4, 4)).repeat_interleave(4, 1).repeat_interleave(4, 2)
    return (ground - 1.0).unsqueeze(1) + 0.6 * torch.randn(n, 1, 16, 16), ground


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.near = nn.Conv2d(1, 16, 3, padding=1)
        self.wide = nn.Conv2d(16, 16, 3, padding=1)
        self.head = nn.Conv2d(16, GROUNDS, 1)

    def forward(self, x):
        return self.head(torch.relu(self.wide(torch.relu(self.near(x)))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    model = Segmenter()
    order = (0, 2, 3, 1) if args.healthy else (0, 1, 2, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss()
    for step in range(120):
        image, ground = maps(16)
        scores = model(image).permute(order)
        loss = criterion(scores.reshape(-1, GROUNDS), ground.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 29:
            print(f"step {step + 1} loss {loss.item():.4f}")
    image, ground = maps(100)
    with torch.no_grad():
        right = model(image).argmax(1) == ground
    print(f"final accuracy {right.float().mean().item():.4f}")


if __name__ == "__main__":
    main()
