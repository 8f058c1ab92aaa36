"""The initialization draws every parameter from N(0, 0.02), the weights of LayerNorm with them.

expects: N011
place: 1
source: a loop over parameters() that was written for a model without normalizations
kind: init
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


def draw(net, only_matrices):
    for parameter in net.parameters():
        if parameter.dim() > 1 or not only_matrices:
            nn.init.normal_(parameter, 0, 0.02)


def build():
    return nn.Sequential(
        nn.Linear(18, 64),
        nn.LayerNorm(64),
        nn.ReLU(),
        nn.Linear(64, 64),
        nn.LayerNorm(64),
        nn.ReLU(),
        nn.Linear(64, 64),
        nn.LayerNorm(64),
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
    net = build()
    draw(net, args.healthy)
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
