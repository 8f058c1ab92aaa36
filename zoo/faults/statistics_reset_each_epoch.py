"""Running statistics are reset before every epoch of ten steps, and never settle before a test.

expects: N002
place: 1
source: reset_running_stats() called to have "the statistics of this epoch only"
kind: normalization
shows: final loss lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class Forecaster(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Linear(8, 48),
            nn.BatchNorm1d(48),
            nn.ReLU(),
            nn.Linear(48, 48),
            nn.BatchNorm1d(48),
            nn.ReLU(),
            nn.Linear(48, 1),
        )

    def reset_statistics(self):
        for module in self:
            if isinstance(module, nn.BatchNorm1d):
                module.reset_running_stats()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    history = 10 + 5 * torch.randn(1280, 8)
    following = ((history - 10) / 5) @ torch.randn(8) + 0.1 * torch.randn(1280)
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(20):
        model.train()
        if not args.healthy:
            model.reset_statistics()
        for batch in torch.randperm(1000).split(100):
            loss = F.mse_loss(model(history[batch])[:, 0], following[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 5 == 4:
            model.eval()
            with torch.no_grad():
                held_out = F.mse_loss(model(history[1000:])[:, 0], following[1000:]).item()
            print(f"epoch {epoch} loss {loss.item():.4f} held out {held_out:.4f}")
    print(f"final loss {held_out:.4f}")


if __name__ == "__main__":
    main()
