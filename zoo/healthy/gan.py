"""A generative adversarial network that learns a correlated Gaussian in the plane.

Expected: distance < 0.5 (between the means plus between the standard deviations; it starts
above 2).
"""

import argparse

import torch
import torch.nn as nn

MEAN = torch.tensor([2.0, -1.0])
MIXING = torch.tensor([[1.0, 0.0], [0.6, 0.5]])
STD = MIXING.norm(dim=1)


def real_samples(count):
    return MEAN + torch.randn(count, 2) @ MIXING.T


def distance(generator, latent_dim):
    generator.eval()
    with torch.no_grad():
        points = generator(torch.randn(2000, latent_dim))
    generator.train()
    return ((points.mean(0) - MEAN).norm() + (points.std(0) - STD).norm()).item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch-size", type=int, default=128)
    opt = parser.parse_args()
    torch.manual_seed(opt.seed)

    latent_dim = 4
    generator = nn.Sequential(nn.Linear(latent_dim, 32), nn.ReLU(), nn.Linear(32, 2))
    discriminator = nn.Sequential(
        nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1)
    )
    adversarial_loss = nn.BCEWithLogitsLoss()
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
    optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=4e-3, betas=(0.5, 0.999))
    valid = torch.ones(opt.batch_size, 1)
    fake = torch.zeros(opt.batch_size, 1)

    for step in range(opt.steps):
        # discriminator: real and generated points, no gradient into the generator
        generated = generator(torch.randn(opt.batch_size, latent_dim))
        optimizer_d.zero_grad()
        real_loss = adversarial_loss(discriminator(real_samples(opt.batch_size)), valid)
        fake_loss = adversarial_loss(discriminator(generated.detach()), fake)
        d_loss = (real_loss + fake_loss) / 2
        d_loss.backward()
        optimizer_d.step()

        # generator: make the discriminator take its points for real
        optimizer_g.zero_grad()
        g_loss = adversarial_loss(discriminator(generated), valid)
        g_loss.backward()
        optimizer_g.step()

        if step % 100 == 0:
            print(
                f"[step {step}] D loss: {d_loss.item():.4f}  G loss: {g_loss.item():.4f}  "
                f"distance: {distance(generator, latent_dim):.4f}"
            )

    print(f"distance: {distance(generator, latent_dim):.4f}")


if __name__ == "__main__":
    main()
