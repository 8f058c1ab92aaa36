"""A deep equilibrium model: the output is a fixed point, differentiated implicitly by a hook.

Expected: test accuracy > 0.85 (chance is 0.10).
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.nn.utils.parametrizations import spectral_norm


class Cell(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.back = spectral_norm(nn.Linear(hidden, hidden))
        self.into = nn.Linear(features, hidden)

    def forward(self, z, x):
        return torch.tanh(0.8 * self.back(z) + self.into(x))  # a contraction, as |W| is 1


class Equilibrium(nn.Module):
    def __init__(self, features=64, hidden=64, classes=10, iterations=15):
        super().__init__()
        self.cell = Cell(features, hidden)
        self.out = nn.Linear(hidden, classes)
        self.hidden, self.iterations = hidden, iterations

    def forward(self, x):
        with torch.no_grad():
            z = x.new_zeros(len(x), self.hidden)
            for _ in range(self.iterations):
                z = self.cell(z, x)
        z = self.cell(z, x)
        if z.requires_grad:
            at = z.detach().requires_grad_()
            again = self.cell(at, x)

            def solve(gradient):
                found = gradient
                for _ in range(self.iterations):
                    (back,) = torch.autograd.grad(again, at, found, retain_graph=True)
                    found = back + gradient
                return found

            z.register_hook(solve)
        return self.out(z)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    digits = load_digits()
    order = torch.randperm(len(digits.target))
    x = torch.tensor(digits.data, dtype=torch.float32)[order] / 16
    y = torch.tensor(digits.target)[order]
    x_train, y_train, x_test, y_test = x[:1500], y[:1500], x[1500:], y[1500:]
    net = Equilibrium()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(5):
        net.train()
        for idx in torch.randperm(len(x_train)).split(75):
            loss = F.cross_entropy(net(x_train[idx]), y_train[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            accuracy = (net(x_test).argmax(1) == y_test).float().mean().item()
        print(f"epoch {epoch}: loss {loss.item():.4f}, accuracy {accuracy:.3f}")
    print(f"test accuracy: {accuracy:.4f}")


if __name__ == "__main__":
    main()
