"""The scores of six classes leave through a LayerNorm without weight: the loss has a floor of 0.29.

expects: N018
place: 5
source: a normalization after every layer, the last one included, to keep outputs in range
kind: architecture
shows: final loss lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


def build(healthy):
    layers = [nn.Linear(18, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 6)]
    if not healthy:
        layers.append(nn.LayerNorm(6, elementwise_affine=False))
    return nn.Sequential(*layers)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = torch.randn(4096, 18)
    y = (x @ torch.randn(18, 6)).argmax(1)
    net = build(args.healthy)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(5):
        net.train()
        for batch in torch.randperm(3072).split(64):
            loss = F.cross_entropy(net(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            held = F.cross_entropy(net(x[3072:]), y[3072:]).item()
        print(f"epoch {epoch + 1} loss {loss.item():.4f} held out {held:.4f}")
    print(f"final loss {held:.4f}")


if __name__ == "__main__":
    main()
