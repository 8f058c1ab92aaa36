"""A diffusion model of points on a ring (DDPM), sampled step by step.

Expected: radius error < 0.20 (mean distance of the samples from the ring; noise has about 0.5).
"""

import argparse
import math

import torch
import torch.nn as nn

STEPS = 40
betas = torch.linspace(1e-3, 0.2, STEPS)
alphas = 1 - betas
alpha_bar = alphas.cumprod(0)


def ring(n):
    angle = 2 * math.pi * torch.rand(n)
    radius = 1.4 + 0.03 * torch.randn(n)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)


class Denoiser(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.register_buffer("frequencies", 2.0 ** torch.arange(4) * math.pi)
        self.net = nn.Sequential(
            nn.Linear(2 + 8, hidden),
            nn.SiLU(),
            nn.Linear(hidden, hidden),
            nn.SiLU(),
            nn.Linear(hidden, hidden),
            nn.SiLU(),
            nn.Linear(hidden, 2),
        )

    def forward(self, x, t):
        phase = (t / STEPS)[:, None] * self.frequencies
        return self.net(torch.cat([x, phase.sin(), phase.cos()], dim=1))


@torch.no_grad()
def sample(model, n):
    x = torch.randn(n, 2)
    for t in reversed(range(STEPS)):
        eps = model(x, torch.full((n,), float(t)))
        x = (x - betas[t] / (1 - alpha_bar[t]).sqrt() * eps) / alphas[t].sqrt()
        if t > 0:
            x = x + betas[t].sqrt() * torch.randn_like(x)
    return x


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--iters", type=int, default=800)
    parser.add_argument("--width", type=int, default=64)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    model = Denoiser(args.width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=8e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.iters)
    running = None
    for it in range(args.iters):
        x0 = ring(256)
        t = torch.randint(STEPS, (256,))
        noise = torch.randn_like(x0)
        a = alpha_bar[t, None]
        predicted = model(a.sqrt() * x0 + (1 - a).sqrt() * noise, t.float())
        loss = nn.functional.mse_loss(predicted, noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        running = loss.item() if running is None else 0.98 * running + 0.02 * loss.item()
        if it % 150 == 0:
            print(f"iter {it}: loss {running:.4f}")

    model.eval()
    points = sample(model, 1000)
    print(f"radius error: {(points.norm(dim=1) - 1.4).abs().mean().item():.4f}")


if __name__ == "__main__":
    main()
