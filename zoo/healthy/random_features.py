"""Kernel regression by random Fourier features: only the last, linear layer is trained.

Expected: r2 > 0.85.
"""

import argparse
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class RandomFourierFeatures(nn.Module):
    def __init__(self, dims, features, length_scale):
        super().__init__()
        self.register_buffer("omega", torch.randn(dims, features) / length_scale)
        self.register_buffer("phase", 2 * math.pi * torch.rand(features))
        self.scale = math.sqrt(2.0)

    def forward(self, x):
        return self.scale * torch.cos(x @ self.omega + self.phase)


def target(x):
    return torch.sin(2 * x[:, :1]) * torch.cos(1.5 * x[:, 1:2]) + 0.5 * x[:, 2:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--features", type=int, default=300)
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x, x_test = torch.randn(3000, 3), torch.randn(500, 3)
    y = target(x) + 0.05 * torch.randn(3000, 1)
    y_test = target(x_test)
    loader = DataLoader(TensorDataset(x, y), batch_size=100, shuffle=True)

    model = nn.Sequential(
        RandomFourierFeatures(3, args.features, length_scale=1.2), nn.Linear(args.features, 1)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=2e-3, momentum=0.9)
    for epoch in range(args.epochs):
        for inputs, targets in loader:
            loss = nn.functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            r2 = 1 - (nn.functional.mse_loss(model(x_test), y_test) / y_test.var()).item()
        print(f"epoch {epoch}: loss {loss.item():.4f}, r2 {r2:.4f}")
    print(f"r2: {r2:.4f}")


if __name__ == "__main__":
    main()
