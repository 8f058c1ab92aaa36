"""There is dropout between the linear layers, and nothing else.

expects: S001
place:
source: a regression head on features, in which dropout looked like the nonlinear part
kind: nonlinearity
shows: final mse lower
"""

import argparse

import torch
from torch import nn


class Head(nn.Module):
    def __init__(self, between):
        super().__init__()
        self.dropout = nn.Dropout(0.1)
        self.between = between
        self.fc1 = nn.Linear(8, 64)
        self.fc2 = nn.Linear(64, 32)
        self.fc3 = nn.Linear(32, 1)

    def forward(self, features):
        h = self.dropout(self.between(self.fc1(features)))
        h = self.dropout(self.between(self.fc2(h)))
        return self.fc3(h)


def drag(n):
    """Drag grows with the square of the speed."""
    x = torch.randn(n, 8)
    return x, x[:, :1] ** 2 - 0.5 * x[:, 1:2] + 0.05 * torch.randn(n, 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x, y = drag(2000)
    x_test, y_test = drag(500)
    model = Head(nn.ReLU() if args.healthy else nn.Identity())
    mse = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(5):
        model.train()
        for rows in torch.randperm(2000).split(40):
            optimizer.zero_grad()
            loss = mse(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            test = mse(model(x_test), y_test).item()
        print(f"epoch {epoch + 1} loss {loss.item():.4f} test {test:.4f}")
    print(f"final mse {test:.4f}")


if __name__ == "__main__":
    main()
