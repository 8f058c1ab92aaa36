"""An estimate of uncertainty turns dropout on in eval mode, and every later score keeps it on.

expects: E001
place:
source: Gal & Ghahramani, "Dropout as a Bayesian approximation" (2016), without the way back
kind: mode
shows: final loss lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


def build():
    return nn.Sequential(
        nn.Linear(10, 96), nn.ReLU(), nn.Dropout(0.5), nn.Linear(96, 96), nn.ReLU(),
        nn.Dropout(0.5), nn.Linear(96, 3),
    )  # fmt: skip


def spread(net, x, samples=8):
    """Mean standard deviation of the class probabilities over several dropout masks."""
    dropouts = [module for module in net if isinstance(module, nn.Dropout)]
    for dropout in dropouts:
        dropout.train()
    with torch.no_grad():
        return torch.stack([net(x).softmax(1) for _ in range(samples)]).std(0).mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = torch.randn(4000, 10)
    y = (x @ torch.randn(10, 3)).square().argmax(1)
    net = build()
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for epoch in range(6):
        net.train()
        for batch in torch.randperm(3000).split(100):
            loss = F.cross_entropy(net(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        doubt = spread(net, x[3000:])
        if args.healthy:
            net.eval()
        with torch.no_grad():
            held_out = F.cross_entropy(net(x[3000:]), y[3000:]).item()
        print(f"epoch {epoch + 1} held out {held_out:.4f} spread {doubt:.4f}")
    print(f"final loss {held_out:.4f}")


if __name__ == "__main__":
    main()
