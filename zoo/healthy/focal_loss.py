"""A detector of small crosses, one pixel in a hundred, with the focal loss and a prior bias.

Expected: peaks found > 0.80 (the highest score of an image lies within a pixel of a cross).
"""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE = 20


def crosses(count):
    image = 0.4 * torch.randn(count, 1, SIZE, SIZE)
    target = torch.zeros(count, 1, SIZE, SIZE)
    for i in range(count):
        for _ in range(int(torch.randint(1, 4, ()))):
            r, c = torch.randint(2, SIZE - 2, (2,)).tolist()
            image[i, 0, r, c - 2 : c + 3] += 1.0
            image[i, 0, r - 2 : r + 3, c] += 1.0
            target[i, 0, r, c] = 1.0
        # bars that are no crosses
        r, c = torch.randint(2, SIZE - 2, (2,)).tolist()
        image[i, 0, r, c - 2 : c + 3] += 1.5
    return image, target


class Detector(nn.Module):
    def __init__(self, width=12, prior=0.01):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 5, padding=2)
        self.norm1 = nn.GroupNorm(4, width)
        self.mid = nn.Conv2d(width, width, 3, padding=1)
        self.norm2 = nn.GroupNorm(4, width)
        self.score = nn.Conv2d(width, 1, 1)
        nn.init.constant_(self.score.bias, -math.log((1 - prior) / prior))

    def forward(self, x):
        x = F.relu(self.norm1(self.stem(x)))
        x = F.relu(self.norm2(self.mid(x)))
        return self.score(x)


def focal_loss(logits, targets, alpha=0.75, gamma=2.0):
    ce = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    p = logits.sigmoid()
    p_t = p * targets + (1 - p) * (1 - targets)
    alpha_t = alpha * targets + (1 - alpha) * (1 - targets)
    return (alpha_t * (1 - p_t) ** gamma * ce).sum() / targets.sum().clamp_min(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--width", type=int, default=12)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    images, targets = crosses(600)
    test_images, test_targets = crosses(200)

    model = Detector(args.width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=1e-4)
    for step in range(args.steps):
        idx = torch.randint(len(images), (16,))
        loss = focal_loss(model(images[idx]), targets[idx])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        if step % 30 == 0:
            print(f"step {step:3d} focal loss {loss.item():.4f}")

    with torch.no_grad():
        best = model(test_images).flatten(1).argmax(1)
    near = F.max_pool2d(test_targets, 3, stride=1, padding=1).flatten(1)
    print(f"peaks found: {near.gather(1, best[:, None]).mean().item():.4f}")


if __name__ == "__main__":
    main()
