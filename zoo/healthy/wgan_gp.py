"""A Wasserstein GAN whose critic is held by a gradient penalty, three critic steps for each other.

Expected: wasserstein < 0.50 (distance to the real numbers on the line; it starts above 1).
"""

import argparse

import torch
import torch.nn as nn
from torch import autograd


def sample_real(n):
    """Two bumps of unlike height."""
    left = torch.rand(n, 1) < 0.3
    return torch.where(left, -0.5 + 0.3 * torch.randn(n, 1), 1.5 + 0.5 * torch.randn(n, 1))


class Generator(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(2, dim), nn.ReLU(True), nn.Linear(dim, dim), nn.ReLU(True), nn.Linear(dim, 1)
        )

    def forward(self, noise):
        return self.main(noise)


class Critic(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(1, dim), nn.SiLU(), nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, 1)
        )

    def forward(self, inputs):
        return self.main(inputs).view(-1)


def gradient_penalty(netD, real, fake, lam):
    alpha = torch.rand(len(real), 1)
    between = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    (gradients,) = autograd.grad(netD(between).sum(), between, create_graph=True)
    return lam * ((gradients.norm(2, dim=1) - 1) ** 2).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--iters", type=int, default=200)
    parser.add_argument("--critic-iters", type=int, default=3)
    parser.add_argument("--width", type=int, default=48)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    netG, netD = Generator(args.width), Critic(args.width)
    optimizerD = torch.optim.Adam(netD.parameters(), lr=5e-3, betas=(0.0, 0.9))
    optimizerG = torch.optim.Adam(netG.parameters(), lr=1e-3, betas=(0.0, 0.9))

    for iteration in range(args.iters):
        for p in netD.parameters():
            p.requires_grad_(True)
        for _ in range(args.critic_iters):
            real = sample_real(128)
            with torch.no_grad():
                fake = netG(torch.randn(128, 2))
            cost = netD(fake).mean() - netD(real).mean()
            penalty = gradient_penalty(netD, real, fake, 1.0)
            netD.zero_grad()
            (cost + penalty).backward()
            optimizerD.step()

        for p in netD.parameters():
            p.requires_grad_(False)
        netG.zero_grad()
        generator_cost = -netD(netG(torch.randn(128, 2))).mean()
        generator_cost.backward()
        optimizerG.step()
        if iteration % 50 == 0:
            print(f"{iteration}: wasserstein estimate {-cost.item():.4f} penalty {penalty:.4f}")

    with torch.no_grad():
        fake, real = netG(torch.randn(4000, 2)), sample_real(4000)
    distance = (fake.sort(0).values - real.sort(0).values).abs().mean().item()
    print(f"wasserstein: {distance:.4f}")


if __name__ == "__main__":
    main()
