"""A Bayesian network: every weight is a Gaussian, trained on the evidence lower bound.

Expected: test accuracy > 0.85 (chance is 0.50).
"""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class BayesLinear(nn.Module):
    def __init__(self, inp, out, prior=1.0):
        super().__init__()
        self.mu = nn.Parameter(torch.randn(out, inp) / math.sqrt(inp))
        self.rho = nn.Parameter(torch.full((out, inp), -4.0))
        self.bias = nn.Parameter(torch.zeros(out))
        self.prior = prior

    def forward(self, x):
        """The local reparameterization samples the outputs rather than the weights."""
        sigma = F.softplus(self.rho)
        mean = F.linear(x, self.mu, self.bias)
        std = (F.linear(x.square(), sigma.square()) + 1e-8).sqrt()
        return mean + std * torch.randn_like(std)

    def kl(self):
        sigma = F.softplus(self.rho)
        ratio = (sigma.square() + self.mu.square()) / self.prior**2
        return (0.5 * (ratio - 1) - (sigma / self.prior).log()).sum()


class BNN(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.l1, self.l2 = BayesLinear(2, hidden), BayesLinear(hidden, hidden)
        self.l3 = BayesLinear(hidden, 1)

    def forward(self, x):
        return self.l3(torch.tanh(self.l2(torch.tanh(self.l1(x))))).squeeze(1)

    def kl(self):
        return sum(layer.kl() for layer in (self.l1, self.l2, self.l3))


def rings(n):
    label = torch.randint(2, (n,))
    radius = 0.7 + 1.0 * label + 0.2 * torch.randn(n)
    angle = 2 * math.pi * torch.rand(n)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1), label.float()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--hidden", type=int, default=24)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x, y = rings(1500)
    x_test, y_test = rings(500)
    net = BNN(args.hidden)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for step in range(args.steps):
        idx = torch.randint(len(x), (100,))
        nll = F.binary_cross_entropy_with_logits(net(x[idx]), y[idx])
        kl = net.kl() / len(x)
        loss = nll + kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step}: nll {nll.item():.4f} kl {kl.item():.4f}")
    with torch.no_grad():
        p = torch.stack([net(x_test).sigmoid() for _ in range(20)]).mean(0)
    accuracy = ((p > 0.5).float() == y_test).float().mean().item()
    print(f"test accuracy: {accuracy:.4f}")


if __name__ == "__main__":
    main()
