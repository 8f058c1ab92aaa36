"""The hidden layers stand in a plain list, which the module does not search for parameters.

expects: S004
place: hidden
source: list and ModuleList, a classic of questions
kind: architecture
shows: final mse lower
"""

import argparse

import torch
from torch import nn


class Deep(nn.Module):
    def __init__(self, depth=3, width=12):
        super().__init__()
        self.inlet = nn.Linear(3, width)
        self.hidden = [nn.Linear(width, width) for _ in range(depth)]
        self.outlet = nn.Linear(width, 1)

    def forward(self, x):
        x = torch.tanh(self.inlet(x))
        for layer in self.hidden:
            x = torch.tanh(layer(x))
        return self.outlet(x)


class Registered(Deep):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.hidden = nn.ModuleList(self.hidden)


def target(x):
    return torch.sin(4 * x[:, :1]) * x[:, 1:2] + torch.cos(3 * x[:, 2:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    model = (Registered if args.healthy else Deep)()
    print(f"{sum(p.numel() for p in model.parameters())} parameters")
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(500):
        x = 2 * torch.rand(64, 3) - 1
        loss = (model(x) - target(x)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 99:
            print(f"step {step + 1} loss {loss.item():.4f}")
    x = 2 * torch.rand(2000, 3) - 1
    with torch.no_grad():
        print(f"final mse {(model(x) - target(x)).square().mean().item():.5f}")


if __name__ == "__main__":
    main()
