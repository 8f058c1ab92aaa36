"""Only the head is put in eval mode for the test, while the encoder goes on dropping.

expects: E001
place:
source: eval() called on the part that one happened to hold in a variable
kind: mode
shows: final error lower
"""

import argparse

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, features, width):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(features, width), nn.Tanh(), nn.Dropout(0.4), nn.Linear(width, width)
        )

    def forward(self, x):
        return torch.tanh(self.net(x))


class Model(nn.Module):
    def __init__(self, features=16, width=64):
        super().__init__()
        self.encoder = Encoder(features, width)
        self.head = nn.Sequential(nn.Dropout(0.1), nn.Linear(width, 1))

    def forward(self, x):
        return self.head(self.encoder(x)).squeeze(1)


def test_error(model, part, x, y):
    part.eval()
    with torch.no_grad():
        error = (model(x) - y).square().mean().sqrt().item()
    part.train()
    return error


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = torch.randn(5000, 16)
    y = (x @ torch.randn(16, 4)).tanh().sum(1)
    model = Model()
    tested = model if args.healthy else model.head
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for step in range(240):
        batch = torch.randint(4000, (100,))
        loss = (model(x[batch]) - y[batch]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 60 == 59:
            error = test_error(model, tested, x[4000:], y[4000:])
            print(f"step {step + 1} train loss {loss.item():.4f} test error {error:.4f}")
    print(f"final error {error:.4f}")


if __name__ == "__main__":
    main()
