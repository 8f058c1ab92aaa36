"""A network of sines (SIREN) that holds one image: from a pixel's place to its brightness.

Expected: psnr > 25.0 (decibels; the mean brightness has about 10).
"""

import argparse
import math

import torch
from torch import nn

from traindx.datasets import fashion_mnist


class SineLayer(nn.Module):
    def __init__(self, inp, out, is_first=False, omega_0=30.0):
        super().__init__()
        self.omega_0 = omega_0
        self.linear = nn.Linear(inp, out)
        bound = 1 / inp if is_first else math.sqrt(6 / inp) / omega_0
        nn.init.uniform_(self.linear.weight, -bound, bound)

    def forward(self, x):
        return torch.sin(self.omega_0 * self.linear(x))


class Siren(nn.Module):
    def __init__(self, hidden, depth, omega_0):
        super().__init__()
        layers = [SineLayer(2, hidden, is_first=True, omega_0=omega_0)]
        layers += [SineLayer(hidden, hidden, omega_0=omega_0) for _ in range(depth)]
        final = nn.Linear(hidden, 1)
        bound = math.sqrt(6 / hidden) / omega_0
        nn.init.uniform_(final.weight, -bound, bound)
        self.net = nn.Sequential(*layers, final)

    def forward(self, coords):
        return self.net(coords)


def get_mgrid(side):
    ticks = torch.linspace(-1, 1, steps=side)
    return torch.stack(torch.meshgrid(ticks, ticks, indexing="ij"), dim=-1).reshape(-1, 2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--omega", type=float, default=15.0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    image = torch.from_numpy(fashion_mnist.load_subset().train_images[args.seed]).float()
    pixels = (image / 127.5 - 1).reshape(-1, 1)
    coords = get_mgrid(28)
    model = Siren(args.hidden, args.depth, args.omega)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(args.steps):
        loss = ((model(coords) - pixels) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"Step {step}, Total loss {loss.item():.6f}")
    with torch.no_grad():
        error = ((model(coords).clamp(-1, 1) - pixels) ** 2).mean().item()
    print(f"psnr: {10 * math.log10(4 / error):.3f}")
