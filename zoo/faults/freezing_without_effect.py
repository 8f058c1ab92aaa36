"""requires_grad is set on a module, which is a new attribute that nobody reads.

expects: S013
place: backbone
source: requires_grad of parameters and requires_grad_ of modules, mixed up
kind: optimizer
shows: provable: a module has no requires_grad, so the backbone that is to stay keeps being trained
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

from traindx.datasets import fashion_mnist


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(784, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU())
        self.head = nn.Linear(48, 10)

    def forward(self, x):
        return self.head(self.backbone(x))


def fit(net, optimizer, x, y, steps):
    for step in range(steps):
        i = torch.randint(len(x), (50,))
        loss = F.cross_entropy(net(x[i]), y[i])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 39:
            print(f"step {step + 1} loss {loss.item():.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    x = torch.from_numpy(data.train_images).float().flatten(1).sub(73.2).div(90.2)
    y = torch.from_numpy(data.train_labels).long()
    net = Net()
    fit(net, torch.optim.Adam(net.parameters(), lr=1e-3), x, y, 120)
    before = net.backbone[0].weight.detach().clone()

    # other customers use the backbone as well: only the head may change
    if args.healthy:
        net.backbone.requires_grad_(False)
    else:
        net.backbone.requires_grad = False
    net.head = nn.Linear(48, 10)
    fit(net, torch.optim.Adam(net.parameters(), lr=1e-2), x[:500], (y[:500] + 3) % 10, 80)
    moved = (net.backbone[0].weight - before).norm() / before.norm()
    print(f"final change of the backbone {moved.item():.5f}")


if __name__ == "__main__":
    main()
