"""A look at a few predictions in each epoch leaves the model in eval mode up to its end.

expects: E002
place:
source: progress shown after the second batch of each epoch, by a function with an eval() of its own
kind: mode
shows: final loss lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


def build():
    return nn.Sequential(
        nn.Linear(18, 128),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(128, 128),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(128, 6),
    )


@torch.no_grad()
def preview(net, x, back):
    net.eval()
    guess = net(x).argmax(1)
    if back:
        net.train()
    return guess


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = torch.randn(1600, 18)
    y = (x @ torch.randn(18, 6)).argmax(1)
    noisy = torch.where(torch.rand(1600) < 0.3, torch.randint(6, (1600,)), y)
    net = build()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(40):
        net.train()
        for number, batch in enumerate(torch.randperm(600).split(60)):
            loss = F.cross_entropy(net(x[batch]), noisy[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if number == 1:
                preview(net, x[600:608], args.healthy)
        net.eval()
        with torch.no_grad():
            held = F.cross_entropy(net(x[600:]), y[600:]).item()
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1} loss {loss.item():.4f} held out {held:.4f}")
    print(f"final loss {held:.4f}")


if __name__ == "__main__":
    main()
