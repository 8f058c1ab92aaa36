"""Each worker of the loader starts NumPy from the same seed, in every epoch again.

expects: L010
place:
source: a well-known trap of data loaders with random numbers from NumPy
kind: data
shows: final mse lower
"""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Simulated(Dataset):
    """Every item is simulated when it is asked for."""

    def __len__(self):
        return 192

    def __getitem__(self, index):
        x = np.random.uniform(-2, 2, size=4).astype(np.float32)
        y = np.sin(2 * x[0]) * x[1] + np.abs(x[2]) - 0.3 * x[3] + 0.7 * np.random.randn()
        return x, np.float32(y)


def exact(x):
    return torch.sin(2 * x[:, 0]) * x[:, 1] + x[:, 2].abs() - 0.3 * x[:, 3]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    def same(worker):
        np.random.seed(args.seed)

    def own(worker):
        np.random.seed(torch.initial_seed() % 2**32)

    init = own if args.healthy else same
    loader = DataLoader(Simulated(), batch_size=32, num_workers=2, worker_init_fn=init)
    model = nn.Sequential(
        nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(30):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x).squeeze(1), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    x = 4 * torch.rand(2000, 4) - 2
    with torch.no_grad():
        print(f"final mse {(model(x).squeeze(1) - exact(x)).square().mean().item():.4f}")


if __name__ == "__main__":
    main()
