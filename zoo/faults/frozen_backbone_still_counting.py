"""The pretrained backbone is frozen, but its BatchNorm goes on averaging the new, small batches.

expects: N016
place: backbone.1
source: requires_grad = False taken for all that freezing a network needs
kind: mode
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


def backbone():
    return nn.Sequential(
        nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64), nn.BatchNorm1d(64),
        nn.ReLU(),
    )  # fmt: skip


class Head(nn.Module):
    def __init__(self, backbone, classes):
        super().__init__()
        self.backbone = backbone
        self.classify = nn.Linear(64, classes)

    def forward(self, x):
        return self.classify(self.backbone(x))


def fit(model, x, y, steps, batch_size, lr, frozen_mode=None):
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(params, lr=lr)
    model.train()
    if frozen_mode is not None:
        model.backbone.train(frozen_mode)
    for _ in range(steps):
        # the records of one customer lie together
        start = torch.randint(len(x) - batch_size, ()).item()
        batch = slice(start, start + batch_size)
        loss = F.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"  {steps} steps, loss {loss.item():.4f}")


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = torch.randn(4096, 16)
    coarse = (x @ torch.randn(16, 4)).argmax(1)
    body = backbone()
    pretrained = Head(body, 4)
    fit(pretrained, x, coarse, steps=200, batch_size=128, lr=5e-3)
    print(f"pretrained {accuracy(pretrained, x, coarse):.4f}")

    body.requires_grad_(False)
    fine = (x[:, :8] @ torch.randn(8, 3)).argmax(1)
    order = fine[:2048].argsort()
    model = Head(body, 3)
    frozen_mode = not args.healthy
    fit(model, x[order], fine[order], 300, batch_size=12, lr=3e-3, frozen_mode=frozen_mode)
    print(f"final accuracy {accuracy(model, x[2048:], fine[2048:]):.4f}")


if __name__ == "__main__":
    main()
