"""The last layer of a regression is followed by BatchNorm without weights: it cannot say how much.

expects: N018
place: norm_out
source: a block of convolution, norm and activation repeated once too often
kind: architecture
shows: final error lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class Regression(nn.Module):
    def __init__(self, norm_out):
        super().__init__()
        self.hidden = nn.Linear(10, 64)
        self.norm = nn.BatchNorm1d(64)
        self.out = nn.Linear(64, 2)
        self.norm_out = norm_out

    def forward(self, x):
        return self.norm_out(self.out(F.relu(self.norm(self.hidden(x)))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = torch.randn(3000, 10)
    price = torch.stack([3 + 2 * x[:, 0] + x[:, 1].square(), 5 - x[:, 2] * x[:, 3]], dim=1)
    norm_out = nn.Identity() if args.healthy else nn.BatchNorm1d(2, affine=False)
    model = Regression(norm_out)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(250):
        batch = torch.randint(2400, (64,))
        loss = F.mse_loss(model(x[batch]), price[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        print(f"final error {(model(x[2400:]) - price[2400:]).abs().mean().item():.4f}")


if __name__ == "__main__":
    main()
