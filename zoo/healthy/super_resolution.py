"""Doubles the resolution of images: sub-pixel convolutions add what bicubic interpolation lacks.

Expected: gain in decibels > 1.0 (of the PSNR, over bicubic interpolation).
"""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


class ESPCN(nn.Module):
    def __init__(self, width, upscale_factor=2):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 5, padding=2)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.conv3 = nn.Conv2d(width, upscale_factor**2, 3, padding=1)
        self.shuffle = nn.PixelShuffle(upscale_factor)
        for conv in (self.conv1, self.conv2):
            nn.init.orthogonal_(conv.weight, nn.init.calculate_gain("relu"))
        nn.init.orthogonal_(self.conv3.weight, 0.1)

    def forward(self, x):
        h = torch.relu(self.conv2(torch.relu(self.conv1(x))))
        blurred = F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=False)
        return blurred + self.shuffle(self.conv3(h))


def psnr(prediction, truth):
    return 10 * math.log10(1 / F.mse_loss(prediction.clamp(0, 1), truth).item())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--width", type=int, default=12)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--images", type=int, default=1200)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    data = fashion_mnist.load_subset()
    high = torch.from_numpy(data.train_images[: args.images]).float()[:, None] / 255
    high_test = torch.from_numpy(data.test_images[:300]).float()[:, None] / 255
    low, low_test = F.avg_pool2d(high, 2), F.avg_pool2d(high_test, 2)
    loader = DataLoader(TensorDataset(low, high), batch_size=16, shuffle=True)
    model = ESPCN(args.width)
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(1, args.epochs + 1):
        epoch_loss = 0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            epoch_loss += loss.item()
            loss.backward()
            optimizer.step()
        print(f"===> Epoch {epoch} Complete: Avg. Loss: {epoch_loss / len(loader):.5f}")
    model.eval()
    bicubic = F.interpolate(low_test, scale_factor=2, mode="bicubic", align_corners=False)
    with torch.no_grad():
        ours, base = psnr(model(low_test), high_test), psnr(bicubic, high_test)
    print(f"bicubic {base:.2f} dB, network {ours:.2f} dB")
    print(f"gain in decibels: {max(0.0, ours - base):.4f}")


if __name__ == "__main__":
    main()
