"""The network learns to give the clean point, and sampling takes what it gives for the noise.

expects: L021
place:
source: the two parametrizations of diffusion models, mixed between two files
kind: loss-pairing
shows: final distance lower
"""

import argparse

import torch
from torch import nn

STEPS = 25
BETAS = torch.linspace(1e-3, 0.35, STEPS)
ALPHAS = 1 - BETAS
KEPT = ALPHAS.cumprod(0)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 96), nn.SiLU(), nn.Linear(96, 96), nn.SiLU())
        self.out = nn.Linear(96, 2)

    def forward(self, x, t):
        when = (t.float() / STEPS - 0.5)[:, None]
        return self.out(self.net(torch.cat((x, when), dim=1)))


def ring(n):
    angle = 6.2832 * torch.rand(n)
    return 1.5 * torch.stack((angle.cos(), angle.sin()), dim=1) + 0.05 * torch.randn(n, 2)


@torch.no_grad()
def sample(model, n):
    x = torch.randn(n, 2)
    for t in reversed(range(STEPS)):
        noise = model(x, torch.full((n,), t))
        x = (x - BETAS[t] / (1 - KEPT[t]).sqrt() * noise) / ALPHAS[t].sqrt()
        if t > 0:
            x = x + BETAS[t].sqrt() * torch.randn(n, 2)
    return x


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    model = Denoiser()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(400):
        clean, t = ring(128), torch.randint(STEPS, (128,))
        noise = torch.randn_like(clean)
        kept = KEPT[t][:, None]
        noisy = kept.sqrt() * clean + (1 - kept).sqrt() * noise
        target = noise if args.healthy else clean
        loss = nn.functional.mse_loss(model(noisy, t), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 80 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    radius = sample(model, 1000).norm(dim=1)
    print(f"final distance {(radius - 1.5).abs().mean().item():.4f}")


if __name__ == "__main__":
    main()
