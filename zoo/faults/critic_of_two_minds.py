"""The critic sees real and generated points in separate batches, which its BatchNorm makes alike.

expects: N005
place: 1
source: advice for and against separate batches of real and fake in guides to training GANs
kind: normalization
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

BATCH = 64


def real_points(count):
    angle = torch.rand(count) * 6.2832
    ring = torch.stack([angle.cos(), angle.sin()], dim=1) * 2
    return ring + torch.tensor([4.0, 4.0]) + 0.1 * torch.randn(count, 2)


def judge(critic, real, fake, together):
    """Scores of real points, then of generated ones."""
    if together:
        return critic(torch.cat([real, fake]))[:, 0]
    return torch.cat([critic(real), critic(fake)])[:, 0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
    critic = nn.Sequential(
        nn.Linear(2, 32), nn.BatchNorm1d(32), nn.LeakyReLU(0.2), nn.Linear(32, 1)
    )
    to_generator = torch.optim.Adam(generator.parameters(), lr=1e-4, betas=(0.5, 0.999))
    to_critic = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.999))
    truth = torch.cat([torch.ones(BATCH), torch.zeros(BATCH)])
    together = args.healthy
    for step in range(200):
        real, fake = real_points(BATCH), generator(torch.randn(BATCH, 4))
        scores = judge(critic, real, fake.detach(), together)
        loss_critic = F.binary_cross_entropy_with_logits(scores, truth)
        to_critic.zero_grad()
        loss_critic.backward()
        to_critic.step()

        loss_generator = F.softplus(-judge(critic, real, fake, together)[BATCH:]).mean()
        to_generator.zero_grad()
        loss_generator.backward()
        to_generator.step()
        if step % 50 == 49:
            print(f"step {step + 1} critic {loss_critic.item():.4f} {loss_generator.item():.4f}")

    critic.eval()
    with torch.no_grad():
        real, fake = critic(real_points(1000)), critic(generator(torch.randn(1000, 4)))
    told_apart = torch.cat([real > 0, fake < 0]).float().mean().item()
    print(f"final accuracy {told_apart:.4f}")


if __name__ == "__main__":
    main()
