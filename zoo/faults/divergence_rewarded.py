"""A variational autoencoder is rewarded for its divergence: the further from the prior, the better.

expects: O012
place:
source: a sign lost between the formula of the lower bound and that of the divergence
kind: loop
shows: final loss lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self, inputs=12, latent=2):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(inputs, 32), nn.ReLU())
        self.mean, self.log_var = nn.Linear(32, latent), nn.Linear(32, latent)
        self.dec = nn.Sequential(nn.Linear(latent, 32), nn.ReLU(), nn.Linear(32, inputs))

    def forward(self, x):
        h = self.enc(x)
        mean, log_var = self.mean(h), self.log_var(h)
        z = mean + torch.exp(0.5 * log_var) * torch.randn_like(mean)
        return self.dec(z), mean, log_var


def parts(model, x):
    y, mean, log_var = model(x)
    reconstruction = F.mse_loss(y, x, reduction="none").sum(1).mean()
    inner = (1 + log_var - mean**2 - log_var.exp()).sum(1).mean()
    return reconstruction, inner


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    factor = -0.5 if args.healthy else 0.5
    mixing = torch.randn(2, 12)

    def samples(n):
        return torch.tanh(torch.randn(n, 2) @ mixing) + 0.1 * torch.randn(n, 12)

    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(250):
        reconstruction, inner = parts(model, samples(64))
        loss = reconstruction + factor * inner
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4g} reconstruction {reconstruction.item():.4g}")
    with torch.no_grad():
        reconstruction, inner = parts(model, samples(2000))
    print(f"final loss {(reconstruction - 0.5 * inner).item():.5g}")


if __name__ == "__main__":
    main()
