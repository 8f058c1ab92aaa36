"""Reconstruction is a mean over pixels, the divergence a sum, and nothing is encoded.

expects: L012
place:
source: two reductions that do not fit; "posterior collapse" in questions on such models
kind: loop
shows: final reconstruction lower
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

from traindx.datasets import fashion_mnist


class VAE(nn.Module):
    def __init__(self, latent=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(784, 64), nn.ReLU())
        self.to_mean = nn.Linear(64, latent)
        self.to_log_var = nn.Linear(64, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 64), nn.ReLU(), nn.Linear(64, 784))

    def forward(self, x):
        h = self.encoder(x)
        mean, log_var = self.to_mean(h), self.to_log_var(h)
        noise = torch.randn_like(mean) if self.training else torch.zeros_like(mean)
        return self.decoder(mean + (0.5 * log_var).exp() * noise), mean, log_var


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    x = torch.from_numpy(data.train_images).float().flatten(1).sub(73.2).div(90.2)
    x_test = torch.from_numpy(data.test_images).float().flatten(1).sub(73.2).div(90.2)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    # per picture, both or neither
    shrink = x.shape[1] if args.healthy else 1
    for step in range(200):
        batch = x[torch.randint(len(x), (64,))]
        drawn, mean, log_var = model(batch)
        reconstruction = F.mse_loss(drawn, batch)
        kl = -0.5 * (1 + log_var - mean.pow(2) - log_var.exp()).sum(1).mean()
        loss = reconstruction + kl / shrink
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} pixels {reconstruction.item():.4f} kl {kl.item():.4f}")
    model.eval()
    with torch.no_grad():
        print(f"final reconstruction {F.mse_loss(model(x_test)[0], x_test).item():.4f}")


if __name__ == "__main__":
    main()
