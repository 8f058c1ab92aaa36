"""Contrastive learning without labels (SimCLR), then a linear probe on the frozen features.

Expected: probe accuracy > 0.62 (chance is 0.10).
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

from traindx.datasets import fashion_mnist


def augment(images):
    """Shifts by up to two pixels, another contrast, noise, and a mirror image half of the time."""
    n = len(images)
    padded = F.pad(images, (2, 2, 2, 2))
    dy, dx = torch.randint(5, (2,)).tolist()
    out = padded[:, :, dy : dy + 14, dx : dx + 14]
    out = torch.where(torch.rand(n, 1, 1, 1) < 0.5, out.flip(-1), out)
    out = out * (0.6 + 0.8 * torch.rand(n, 1, 1, 1))
    return out + 0.1 * torch.randn_like(out)


class Encoder(nn.Module):
    def __init__(self, width=16, projection=32):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.Flatten(),
        )
        features = 2 * width * 16
        self.projector = nn.Sequential(
            nn.Linear(features, 64), nn.ReLU(), nn.Linear(64, projection)
        )

    def forward(self, x):
        return self.projector(self.backbone(x))


def nt_xent(a, b, temperature=0.3):
    z = F.normalize(torch.cat([a, b]), dim=1)
    similarity = z @ z.T / temperature
    similarity.fill_diagonal_(float("-inf"))
    n = len(a)
    partner = torch.arange(2 * n).roll(n)
    return F.cross_entropy(similarity, partner)


def prepare(images):
    small = F.avg_pool2d(torch.from_numpy(images).float()[:, None] / 255, 2)
    return (small - 0.287) / 0.33


def linear_probe(encoder, x, y, x_test, y_test):
    encoder.eval()
    with torch.no_grad():
        features, test_features = encoder.backbone(x), encoder.backbone(x_test)
    mean, std = features.mean(0), features.std(0) + 1e-3
    features, test_features = (features - mean) / std, (test_features - mean) / std
    probe = nn.Linear(features.shape[1], 10)
    optimizer = torch.optim.Adam(probe.parameters(), lr=1e-3, weight_decay=1e-3)
    for _ in range(60):
        batch = torch.randint(len(y), (256,))
        loss = F.cross_entropy(probe(features[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return (probe(test_features).argmax(1) == y_test).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--width", type=int, default=16)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    data = fashion_mnist.load_subset()
    x, x_test = prepare(data.train_images), prepare(data.test_images)
    y, y_test = (torch.from_numpy(n).long() for n in (data.train_labels, data.test_labels))

    encoder = Encoder(args.width)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=2e-3, weight_decay=1e-6)
    for step in range(args.steps):
        batch = x[torch.randperm(len(x))[:128]]
        loss = nt_xent(encoder(augment(batch)), encoder(augment(batch)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"step {step}: contrastive loss {loss.item():.4f}")
    print(f"probe accuracy: {linear_probe(encoder, x, y, x_test, y_test):.4f}")


if __name__ == "__main__":
    main()
