"""ConvNeXt-like blocks with layer scale, and whole blocks left out at random (stochastic depth).

Expected: test accuracy > 0.56 (chance is 0.10).
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

from traindx.datasets import fashion_mnist


class Block(nn.Module):
    def __init__(self, dim, drop_path, layer_scale=1e-2):
        super().__init__()
        self.dwconv = nn.Conv2d(dim, dim, kernel_size=3, padding=1, groups=dim)
        self.norm = nn.LayerNorm(dim)
        self.pwconv1 = nn.Linear(dim, 2 * dim)
        self.pwconv2 = nn.Linear(2 * dim, dim)
        self.gamma = nn.Parameter(layer_scale * torch.ones(dim))
        self.drop_path = drop_path

    def forward(self, x):
        if self.training and torch.rand(()) < self.drop_path:
            return x  # all of the batch skips this block
        h = self.dwconv(x).permute(0, 2, 3, 1)
        h = self.gamma * self.pwconv2(F.gelu(self.pwconv1(self.norm(h))))
        h = h.permute(0, 3, 1, 2)
        return x + (h / (1 - self.drop_path) if self.training else h)


class ConvNeXt(nn.Module):
    def __init__(self, dim, depth, drop_path_rate=0.2):
        super().__init__()
        self.stem = nn.Conv2d(1, dim, kernel_size=4, stride=4)
        self.stem_norm = nn.GroupNorm(1, dim)
        rates = torch.linspace(0, drop_path_rate, depth).tolist()
        self.blocks = nn.Sequential(*(Block(dim, rate) for rate in rates))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, 10)
        for m in self.modules():
            if isinstance(m, (nn.Conv2d, nn.Linear)):
                nn.init.trunc_normal_(m.weight, std=0.1)
                nn.init.zeros_(m.bias)

    def forward(self, x):
        x = self.blocks(self.stem_norm(self.stem(x)))
        return self.head(self.norm(x.mean([-2, -1])))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dim", type=int, default=24)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    data = fashion_mnist.load_subset()
    x = (torch.tensor(data.train_images)[:, None].float() - 73) / 90
    x_test = (torch.tensor(data.test_images)[:, None].float() - 73) / 90
    y, y_test = torch.tensor(data.train_labels).long(), torch.tensor(data.test_labels).long()
    model = ConvNeXt(args.dim, args.depth)
    optimizer = torch.optim.AdamW(model.parameters(), lr=8e-3, weight_decay=0.05)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 8e-3, args.epochs * 60)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    for epoch in range(args.epochs):
        model.train()
        for idx in torch.randperm(len(x)).split(100):
            optimizer.zero_grad()
            loss = criterion(model(x[idx]), y[idx])
            loss.backward()
            optimizer.step()
            scheduler.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
        print(f"epoch {epoch}: loss {loss.item():.4f}, accuracy {accuracy:.4f}")
    print(f"test accuracy: {accuracy:.4f}")


if __name__ == "__main__":
    main()
