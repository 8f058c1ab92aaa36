"""An autoencoder with a discrete code (VQ-VAE): straight-through gradient, codebook by averages.

Expected: explained variance > 0.55 (the mean image explains none of it).
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

from traindx.datasets import fashion_mnist


class VectorQuantizerEMA(nn.Module):
    def __init__(self, num_embeddings, dim, decay=0.9, commitment=0.25):
        super().__init__()
        self.decay, self.commitment = decay, commitment
        self.register_buffer("codebook", torch.randn(num_embeddings, dim))
        self.register_buffer("cluster_size", torch.ones(num_embeddings))
        self.register_buffer("ema_w", self.codebook.clone())

    def forward(self, z):
        flat = z.detach().reshape(-1, z.shape[-1])
        codes = torch.cdist(flat, self.codebook).argmin(1)
        quantized = self.codebook[codes].view_as(z)
        if self.training:
            onehot = F.one_hot(codes, len(self.codebook)).float()
            self.cluster_size.lerp_(onehot.sum(0), 1 - self.decay)
            self.ema_w.lerp_(onehot.T @ flat, 1 - self.decay)
            unused = self.cluster_size < 0.5
            self.codebook.copy_(self.ema_w / self.cluster_size.clamp_min(1e-3)[:, None])
            if unused.any():
                again = flat[torch.randint(len(flat), (int(unused.sum()),))]
                self.codebook[unused] = again
                self.ema_w[unused], self.cluster_size[unused] = again, 1.0
        loss = self.commitment * F.mse_loss(z, quantized)
        return z + (quantized - z).detach(), loss


class VQVAE(nn.Module):
    def __init__(self, hidden=96, slots=8, dim=4, codes=32):
        super().__init__()
        self.slots, self.dim = slots, dim
        self.encoder = nn.Sequential(
            nn.Linear(784, hidden), nn.ReLU(), nn.Linear(hidden, slots * dim)
        )
        self.quantizer = VectorQuantizerEMA(codes, dim)
        self.decoder = nn.Sequential(
            nn.Linear(slots * dim, hidden), nn.ReLU(), nn.Linear(hidden, 784)
        )

    def forward(self, x):
        z = self.encoder(x).view(len(x), self.slots, self.dim)
        quantized, commitment = self.quantizer(z)
        return self.decoder(quantized.flatten(1)), commitment


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--hidden", type=int, default=96)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    data = fashion_mnist.load_subset()
    x = (torch.tensor(data.train_images).flatten(1).float() - 73) / 90
    x_test = (torch.tensor(data.test_images).flatten(1).float() - 73) / 90
    model = VQVAE(args.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(args.steps):
        batch = x[torch.randint(len(x), (64,))]
        reconstruction, commitment = model(batch)
        error = F.mse_loss(reconstruction, batch)
        optimizer.zero_grad()
        (error + commitment).backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: error {error.item():.4f} commitment {commitment.item():.4f}")
    model.eval()
    with torch.no_grad():
        error = F.mse_loss(model(x_test)[0], x_test)
    variance = (x_test - x.mean(0)).square().mean()
    print(f"explained variance: {1 - (error / variance).item():.4f}")


if __name__ == "__main__":
    main()
