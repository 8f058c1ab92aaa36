"""A variational autoencoder on Fashion-MNIST, with the analytic KL divergence.

Expected: nats per image < 290.0 (a constant grey level for each pixel costs about 395).
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


class VAE(nn.Module):
    def __init__(self, hidden=128, latent=8):
        super().__init__()
        self.fc1 = nn.Linear(784, hidden)
        self.fc21 = nn.Linear(hidden, latent)
        self.fc22 = nn.Linear(hidden, latent)
        self.fc3 = nn.Linear(latent, hidden)
        self.fc4 = nn.Linear(hidden, 784)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        return mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)

    def decode(self, z):
        return self.fc4(F.relu(self.fc3(z)))

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(logits, x, mu, logvar):
    bce = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return (bce + kld) / len(x)


def main():
    parser = argparse.ArgumentParser(description="VAE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--latent", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    train = torch.from_numpy(data.train_images).flatten(1) / 255.0
    test = torch.from_numpy(data.test_images).flatten(1) / 255.0
    loader = DataLoader(TensorDataset(train), batch_size=100, shuffle=True)

    model = VAE(args.hidden, args.latent)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(1, args.epochs + 1):
        model.train()
        total = 0.0
        for (x,) in loader:
            optimizer.zero_grad()
            logits, mu, logvar = model(x)
            loss = loss_function(logits, x, mu, logvar)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"====> Epoch: {epoch} Average loss: {total / len(loader):.4f}")

    model.eval()
    with torch.no_grad():
        logits, mu, logvar = model(test)
        print(f"nats per image: {loss_function(logits, test, mu, logvar).item():.2f}")


if __name__ == "__main__":
    main()
