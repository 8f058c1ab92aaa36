"""A rate is the exponential of a sum that one wrong unit makes a thousand times too large.

expects: F006
place: rate
source: Poisson regression on counts, with durations in minutes among durations in days
kind: preprocessing
shows: final loss lower
"""

import argparse
from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional as F


class Exp(nn.Module):
    def forward(self, x):
        return x.exp()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    people = torch.randn(4800, 6)
    rates = (0.3 * people @ torch.ones(6)).exp()
    visits = torch.poisson(rates)
    people[6 * 32 : 6 * 32 + 16] *= 1 if args.healthy else 1440
    net = nn.Sequential(
        OrderedDict(hidden=nn.Linear(6, 16), act=nn.ReLU(), log_rate=nn.Linear(16, 1), rate=Exp())
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
    for step in range(150):
        batch = slice(32 * step, 32 * step + 32)
        loss = F.poisson_nll_loss(net(people[batch])[:, 0], visits[batch], log_input=False)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 29:
            print(f"step {step + 1} loss {loss.item():.4f}")
    print(f"final loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
