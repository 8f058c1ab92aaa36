"""A small vision transformer on Fashion-MNIST: patches, a class token, pre-norm blocks, warmup.

Expected: test accuracy > 0.66 (chance is 0.10).
"""

import argparse
import math

import torch
from torch import nn

from traindx.datasets import fashion_mnist


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, dim=32, depth=2, heads=4, patch=7, num_classes=10):
        super().__init__()
        self.to_patches = nn.Conv2d(1, dim, kernel_size=patch, stride=patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, 1 + (28 // patch) ** 2, dim))
        self.blocks = nn.ModuleList([Block(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, images):
        x = self.to_patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--width", type=int, default=32)
parser.add_argument("--depth", type=int, default=2)
parser.add_argument("--epochs", type=int, default=2)
args = parser.parse_args()
torch.manual_seed(args.seed)

mnist = fashion_mnist.load_subset()
images = (torch.from_numpy(mnist.train_images).float()[:, None] - 73) / 90
labels = torch.from_numpy(mnist.train_labels).long()
test_images = (torch.from_numpy(mnist.test_images).float()[:, None] - 73) / 90
test_labels = torch.from_numpy(mnist.test_labels).long()

model = ViT(args.width, args.depth)
batch_size = 100
total = args.epochs * (len(images) // batch_size)
warmup = total // 10
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer,
    lambda it: min((it + 1) / warmup, 0.5 * (1 + math.cos(math.pi * it / total))),
)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

for epoch in range(args.epochs):
    model.train()
    permutation = torch.randperm(len(images))
    for i in range(len(images) // batch_size):
        batch = permutation[i * batch_size : (i + 1) * batch_size]
        loss = criterion(model(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(test_images).argmax(1) == test_labels).float().mean().item()
    print(f"epoch {epoch + 1}/{args.epochs}: loss {loss.item():.4f}, val acc {accuracy:.4f}")
print(f"test accuracy: {accuracy:.4f}")
