"""A leaky ReLU with a slope of one below zero is a straight line.

expects: S001
place:
source: an argument taken for the slope above zero, or for "how much of a ReLU"
kind: nonlinearity
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn, optim

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--healthy", action="store_true")
args = parser.parse_args()
torch.manual_seed(args.seed)

slope = 0.1 if args.healthy else 1.0


def parity(n):
    """Whether an even number of three switches is on; the readings of the switches are noisy."""
    bits = torch.randint(2, (n, 3)).float()
    x = torch.cat((2 * bits - 1 + 0.2 * torch.randn(n, 3), torch.randn(n, 3)), dim=1)
    return x, bits.sum(1).long() % 2


model = nn.Sequential(
    nn.Linear(6, 40),
    nn.LeakyReLU(slope),
    nn.Linear(40, 40),
    nn.LeakyReLU(slope),
    nn.Linear(40, 2),
)
criterion = nn.CrossEntropyLoss()
optimizer = optim.AdamW(model.parameters(), lr=4e-3)
x, y = parity(2400)
x_test, y_test = parity(600)
for epoch in range(5):
    for rows in torch.randperm(2400).split(60):
        loss = criterion(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch + 1}: loss {loss.item():.4f}")

model.eval()
with torch.no_grad():
    print(f"final accuracy {(model(x_test).argmax(1) == y_test).float().mean().item():.4f}")
