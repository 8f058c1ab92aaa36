"""A network on sets: how far do the points of a cloud spread, whatever their order and number?

Expected: r2 > 0.80.
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class DeepSets(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(2, dim), nn.ELU(), nn.Linear(dim, dim), nn.ELU())
        self.rho = nn.Sequential(nn.Linear(2 * dim, dim), nn.ELU(), nn.Linear(dim, 1))

    def forward(self, points, mask):
        h = self.phi(points) * mask[..., None]
        mean = h.sum(1) / mask.sum(1, keepdim=True)
        most = h.masked_fill(mask[..., None] == 0, -2.0).amax(1)
        return self.rho(torch.cat([mean, most], dim=-1)).squeeze(-1)


def clouds(count, most=20):
    size = torch.randint(8, most + 1, (count, 1))
    mask = (torch.arange(most) < size).float()
    spread = torch.exp(0.5 * torch.randn(count, 1, 1))
    points = torch.randn(count, 1, 2) + spread * torch.randn(count, most, 2)
    return points * mask[..., None] / 1.6, mask, spread[:, 0, 0].log() / 0.5


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--dim", type=int, default=32)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    net = DeepSets(args.dim)
    optimizer = torch.optim.NAdam(net.parameters(), lr=3e-3)
    for step in range(1, args.steps + 1):
        points, mask, target = clouds(64)
        loss = F.mse_loss(net(points, mask), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 60 == 0:
            print(f"step {step}: mse {loss.item():.4f}")

    net.eval()
    points, mask, target = clouds(1000)
    with torch.no_grad():
        error = F.mse_loss(net(points, mask), target)
    print(f"r2 = {1 - (error / target.var()).item():.4f}")


if __name__ == "__main__":
    main()
