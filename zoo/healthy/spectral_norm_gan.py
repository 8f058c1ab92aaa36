"""A hinge GAN with spectral normalization in the discriminator, two of its steps for each other.

It learns the mixture of four spots in the plane; a spot counts if it gets a share of the points.

Expected: good points > 0.65 (within three deviations of a spot; noise has about 0.1).
"""

import argparse

import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

SPOTS = torch.tensor([[1.5, 0.0], [-1.5, 0.0], [0.0, 1.5], [0.0, -1.5]])


def real(n):
    return SPOTS[torch.randint(4, (n,))] + 0.2 * torch.randn(n, 2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--width", type=int, default=64)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    w = args.width

    G = nn.Sequential(
        nn.Linear(8, w),
        nn.BatchNorm1d(w),
        nn.ReLU(),
        nn.Linear(w, w),
        nn.BatchNorm1d(w),
        nn.ReLU(),
        nn.Linear(w, 2),
    )
    D = nn.Sequential(
        spectral_norm(nn.Linear(2, w)),
        nn.LeakyReLU(0.2),
        spectral_norm(nn.Linear(w, w)),
        nn.LeakyReLU(0.2),
        spectral_norm(nn.Linear(w, 1)),
    )
    opt_G = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.0, 0.9))
    opt_D = torch.optim.Adam(D.parameters(), lr=4e-3, betas=(0.0, 0.9))

    for step in range(args.steps):
        for _ in range(2):
            with torch.no_grad():
                fake = G(torch.randn(128, 8))
            loss_D = torch.relu(1 - D(real(128))).mean() + torch.relu(1 + D(fake)).mean()
            opt_D.zero_grad()
            loss_D.backward()
            opt_D.step()
        loss_G = -D(G(torch.randn(128, 8))).mean()
        opt_G.zero_grad()
        loss_G.backward()
        opt_G.step()
        if step % 100 == 0:
            print(f"step {step}: D {loss_D.item():.4f} G {loss_G.item():.4f}")

    G.eval()
    with torch.no_grad():
        points = G(torch.randn(2000, 8))
    near, which = torch.cdist(points, SPOTS).min(1)
    print(f"share of each spot: {(which.bincount(minlength=4) / 2000).tolist()}")
    print(f"good points: {(near < 0.6).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
