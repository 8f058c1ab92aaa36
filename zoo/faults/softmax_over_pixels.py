"""A segmentation network returns the softmax over its classes, and cross-entropy takes it again.

expects: L002
place:
source: a softmax kept from the code that draws the predicted masks
kind: loss-pairing
shows: provable: each score lies in 0 to 1, so that no pixel can lose less than 0.551
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class Segmenter(nn.Module):
    def __init__(self, num_classes, as_probabilities):
        super().__init__()
        self.as_probabilities = as_probabilities
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 12, 3, padding=1), nn.ReLU()
        )
        self.classify = nn.Conv2d(12, num_classes, 1)

    def forward(self, images):
        scores = self.classify(self.features(images))
        return F.softmax(scores, dim=1) if self.as_probabilities else scores


def squares(count):
    """Noisy images with a bright and a dark square, and the class of every pixel."""
    images = torch.randn(count, 1, 20, 20) * 0.3
    masks = torch.zeros(count, 20, 20, dtype=torch.long)
    for image, mask, (top, left) in zip(
        images, masks, torch.randint(0, 7, (count, 2)).tolist(), strict=True
    ):
        image[0, top : top + 6, left : left + 6] += 1.5
        mask[top : top + 6, left : left + 6] = 1
        image[0, top + 7 : top + 13, left + 7 : left + 13] -= 1.5
        mask[top + 7 : top + 13, left + 7 : left + 13] = 2
    masks[:, :, 19] = 255  # the last column is not labelled
    return images, masks


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    images, masks = squares(512)
    net = Segmenter(3, as_probabilities=not args.healthy)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    weight = torch.tensor([0.5, 2.0, 2.0])
    for step in range(80):
        batch = torch.randint(len(images), (16,))
        loss = F.cross_entropy(net(images[batch]), masks[batch], weight=weight, ignore_index=255)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            print(f"step {step + 1} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
