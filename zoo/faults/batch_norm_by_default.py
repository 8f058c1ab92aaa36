"""A normalization of one's own calls F.batch_norm without training=, which takes it for False.

expects: N022
place: 1
source: the signature of F.batch_norm, whose training is False by default
kind: normalization
shows: provable: mean 0 and variance 1 are used and never written, so that nothing is normalized
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class Norm(nn.Module):
    def __init__(self, size, right):
        super().__init__()
        self.right = right
        self.weight = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size))
        self.register_buffer("running_mean", torch.zeros(size))
        self.register_buffer("running_var", torch.ones(size))

    def forward(self, x):
        if self.right:
            return F.batch_norm(
                x,
                self.running_mean,
                self.running_var,
                self.weight,
                self.bias,
                training=self.training,
            )
        return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias)


def build(right):
    return nn.Sequential(
        nn.Linear(18, 64),
        Norm(64, right),
        nn.ReLU(),
        nn.Linear(64, 64),
        Norm(64, right),
        nn.ReLU(),
        nn.Linear(64, 64),
        Norm(64, right),
        nn.ReLU(),
        nn.Linear(64, 6),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = 3 * torch.randn(4096, 18) + 1
    y = (x @ torch.randn(18, 6)).square().argmax(1)
    net = build(args.healthy)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(5):
        net.train()
        for batch in torch.randperm(3072).split(64):
            loss = F.cross_entropy(net(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            right = (net(x[3072:]).argmax(1) == y[3072:]).float().mean().item()
        print(f"epoch {epoch + 1} loss {loss.item():.4f} right {right:.4f}")
    print(f"final accuracy {right:.4f}")


if __name__ == "__main__":
    main()
