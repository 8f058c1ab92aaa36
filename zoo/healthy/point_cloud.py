"""PointNet tells turned solids apart, with a learned alignment that is kept nearly orthogonal.

Expected: test accuracy > 0.80 (chance is 0.25).
"""

import argparse
import itertools
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def cloud(kind, points=64):
    angle = torch.rand(points) * 2 * math.pi
    height = torch.rand(points)
    if kind == 0:  # sphere
        xyz = F.normalize(torch.randn(points, 3), dim=1)
    elif kind == 1:  # cube
        xyz = torch.rand(points, 3) * 2 - 1
        face = torch.randint(0, 3, (points,))
        rows = torch.arange(points)
        xyz[rows, face] = xyz[rows, face].sign()
    elif kind == 2:  # cylinder
        xyz = torch.stack([angle.cos(), angle.sin(), 2 * height - 1], dim=1)
    else:  # cone
        radius = 1 - height
        xyz = torch.stack([radius * angle.cos(), radius * angle.sin(), 2 * height - 1], dim=1)
    turn = torch.rand(()) * 2 * math.pi
    c, s = turn.cos().item(), turn.sin().item()
    xyz = xyz @ torch.tensor([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
    xyz = xyz + 0.02 * torch.randn(points, 3)
    xyz = xyz - xyz.mean(dim=0)
    return xyz / xyz.norm(dim=1).max()


def solids(n):
    kinds = torch.randint(0, 4, (n,))
    clouds = torch.stack([cloud(int(kind)) for kind in kinds])
    return clouds.transpose(1, 2).contiguous(), kinds


def pointwise(*widths):
    layers = []
    for i, o in itertools.pairwise(widths):
        layers += [nn.Conv1d(i, o, 1, bias=False), nn.BatchNorm1d(o), nn.ReLU()]
    return nn.Sequential(*layers)


class TNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.points = pointwise(3, 32, 64)
        self.head = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 9))

    def forward(self, x):
        return self.head(self.points(x).amax(2)).view(-1, 3, 3) + torch.eye(3)


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.align = TNet()
        self.points = pointwise(3, 32, 64, 128)
        self.head = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 4))

    def forward(self, x):
        matrix = self.align(x)
        return self.head(self.points(matrix @ x).amax(2)), matrix


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x, y = solids(960)
    x_test, y_test = solids(300)
    net = PointNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, gamma=0.5)
    for epoch in range(6):
        net.train()
        for idx in torch.randperm(len(x)).split(32):
            scores, matrix = net(x[idx])
            skew = matrix @ matrix.transpose(1, 2) - torch.eye(3)
            loss = F.cross_entropy(scores, y[idx]) + 1e-3 * skew.norm(dim=(1, 2)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        net.eval()
        with torch.no_grad():
            accuracy = (net(x_test)[0].argmax(1) == y_test).float().mean().item()
        print(f"epoch {epoch}: loss {loss.item():.4f}, accuracy {accuracy:.3f}")
    print(f"test accuracy: {accuracy:.4f}")


if __name__ == "__main__":
    main()
