"""Gradients are clipped when the step with them has been made already.

expects: G010
place: SGD
source: clipping added at the end of a loop
kind: gradient
shows: final mse lower
"""

import argparse

import torch
from torch import nn


class Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(2, 48, batch_first=True)
        nn.init.orthogonal_(self.rnn.weight_hh_l0, gain=1.3)
        self.fc = nn.Linear(48, 1)

    def forward(self, x):
        _, h = self.rnn(x)
        return self.fc(h[-1]).squeeze(-1)


def adding(n, length=20):
    """Add the two numbers that are marked."""
    numbers = torch.rand(n, length)
    marks = torch.zeros(n, length)
    for row in range(n):
        i = torch.randperm(length)[:2]
        marks[row, i] = 1
    return torch.stack((numbers, marks), dim=2), (numbers * marks).sum(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x, y = adding(1024)
    model = Seq()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    for step in range(150):
        batch = torch.randint(900, (32,))
        loss = nn.functional.mse_loss(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        if args.healthy:
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
        else:
            optimizer.step()
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        if step % 30 == 29:
            print(f"step {step + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        print(f"final mse {nn.functional.mse_loss(model(x[900:]), y[900:]).item():.4f}")


if __name__ == "__main__":
    main()
