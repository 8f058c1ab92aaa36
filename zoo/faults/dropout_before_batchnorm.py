"""Dropout stands before BatchNorm, which in evaluation divides by a variance it no longer meets.

expects: E009
place: drop
source: Li et al., "Understanding the disharmony between dropout and batch normalization" (2019)
kind: mode
shows: final loss lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class Regressor(nn.Module):
    def __init__(self, drop_first):
        super().__init__()
        self.drop_first = drop_first
        self.lift = nn.Linear(12, 64)
        self.drop = nn.Dropout(0.6)
        self.mix = nn.Linear(64, 64)
        self.norm = nn.BatchNorm1d(64)
        self.out = nn.Linear(64, 1)

    def forward(self, x):
        x = torch.relu(self.lift(x))
        if self.drop_first:
            x = torch.relu(self.norm(self.mix(self.drop(x))))
        else:
            x = self.drop(torch.relu(self.norm(self.mix(x))))
        return self.out(x)[:, 0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = torch.randn(6000, 12)
    y = torch.sin(x @ torch.randn(12)) + x[:, 0] * x[:, 1]
    model = Regressor(drop_first=not args.healthy)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(300):
        batch = torch.randint(5000, (128,))
        loss = F.mse_loss(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 99:
            model.eval()
            with torch.no_grad():
                held_out = F.mse_loss(model(x[5000:]), y[5000:]).item()
            model.train()
            print(f"step {step + 1} loss {loss.item():.4f} held out {held_out:.4f}")
    print(f"final loss {held_out:.4f}")


if __name__ == "__main__":
    main()
