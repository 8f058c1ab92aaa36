"""A mixture density network for an inverse problem with several right answers.

Expected: log-likelihood > 0.10 (nats; a single Gaussian for each input reaches about -1.3).
"""

import argparse

import torch
import torch.nn as nn
from torch.distributions import Categorical, MixtureSameFamily, Normal


class MDN(nn.Module):
    def __init__(self, hidden, components):
        super().__init__()
        self.z_h = nn.Sequential(
            nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh()
        )
        self.z_pi = nn.Linear(hidden, components)
        self.z_mu = nn.Linear(hidden, components)
        self.z_sigma = nn.Linear(hidden, components)

    def forward(self, x):
        h = self.z_h(x)
        sigma = nn.functional.softplus(self.z_sigma(h)) + 1e-3
        return MixtureSameFamily(Categorical(logits=self.z_pi(h)), Normal(self.z_mu(h), sigma))


def generate_data(n):
    y = 4 * torch.rand(n) - 2
    x = torch.sin(2.5 * y) + 0.4 * y + 0.1 * torch.randn(n)
    return x[:, None], y


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=400)
    parser.add_argument("--components", type=int, default=5)
    parser.add_argument("--hidden", type=int, default=32)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    network = MDN(args.hidden, args.components)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    x_train, y_train = generate_data(1000)
    for epoch in range(args.epochs):
        loss = -network(x_train).log_prob(y_train).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if epoch % 100 == 0:
            print(f"epoch {epoch}: nll {loss.item():.4f}")
    x_test, y_test = generate_data(2000)
    with torch.no_grad():
        score = network(x_test).log_prob(y_test).mean().item()
    print(f"log-likelihood: {score:.4f}")


if __name__ == "__main__":
    main()
