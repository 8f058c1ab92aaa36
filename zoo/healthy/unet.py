"""A U-Net that finds bright discs in noise, trained on cross-entropy plus the Dice loss.

Expected: test IoU > 0.74 (thresholding the image halfway reaches about 0.4).
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE = 24


def make_discs(count):
    centers = torch.rand(count, 2, 1, 1) * SIZE
    radius = 3 + 3 * torch.rand(count, 1, 1)
    grid = torch.stack(torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij"))
    mask = ((grid - centers).square().sum(1) < radius.square()).float()[:, None]
    return mask + 0.8 * torch.randn(count, 1, SIZE, SIZE), mask


class DoubleConv(nn.Sequential):
    def __init__(self, inp, out):
        super().__init__(
            nn.Conv2d(inp, out, 3, padding=1, bias=False),
            nn.BatchNorm2d(out),
            nn.ReLU(inplace=True),
            nn.Conv2d(out, out, 3, padding=1, bias=False),
            nn.BatchNorm2d(out),
            nn.ReLU(inplace=True),
        )


class UNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inc = DoubleConv(1, width)
        self.down1 = DoubleConv(width, 2 * width)
        self.down2 = DoubleConv(2 * width, 4 * width)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.dec2 = DoubleConv(4 * width, 2 * width)
        self.up1 = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.dec1 = DoubleConv(2 * width, width)
        self.outc = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(F.max_pool2d(x1, 2))
        x3 = self.down2(F.max_pool2d(x2, 2))
        x = self.dec2(torch.cat([x2, self.up2(x3)], dim=1))
        x = self.dec1(torch.cat([x1, self.up1(x)], dim=1))
        return self.outc(x)


def dice_loss(logits, mask):
    p = logits.sigmoid()
    return 1 - (2 * (p * mask).sum() + 1) / (p.sum() + mask.sum() + 1)


@torch.no_grad()
def iou(net, images, masks):
    net.eval()
    predicted = net(images) > 0
    true = masks > 0.5
    return ((predicted & true).sum() / (predicted | true).sum()).item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--width", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    images, masks = make_discs(640)
    test_images, test_masks = make_discs(100)
    net = UNet(args.width)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for step in range(1, args.steps + 1):
        net.train()
        idx = torch.randint(len(images), (16,))
        logits = net(images[idx])
        loss = F.binary_cross_entropy_with_logits(logits, masks[idx])
        loss = loss + dice_loss(logits, masks[idx])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    print(f"test IoU: {iou(net, test_images, test_masks):.4f}")
