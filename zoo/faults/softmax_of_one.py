"""A binary classifier has one output and a softmax over it, which is one whatever the input.

expects: L003
place:
source: a softmax put where a sigmoid was meant (public collections of repaired question-and-answer
    programs hold several)
kind: loss-pairing
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn, optim

p = argparse.ArgumentParser()
p.add_argument("--seed", type=int, default=0)
p.add_argument("--healthy", action="store_true")
args = p.parse_args()
torch.manual_seed(args.seed)


def rings(n):
    """Two noisy rings, one within the other."""
    inner = torch.rand(n) < 0.5
    radius = torch.where(inner, 1.0, 2.0) + 0.2 * torch.randn(n)
    angle = 6.2832 * torch.rand(n)
    points = torch.stack((radius * angle.cos(), radius * angle.sin()), dim=1)
    return points, inner.float().unsqueeze(1)


x_train, y_train = rings(1500)
x_test, y_test = rings(500)
model = nn.Sequential(
    nn.Linear(2, 32),
    nn.ReLU(),
    nn.Linear(32, 16),
    nn.ReLU(),
    nn.Linear(16, 1),
    nn.Sigmoid() if args.healthy else nn.Softmax(dim=1),
)
loss_fn = nn.BCELoss()
optimizer = optim.Adam(model.parameters(), lr=0.01)
for epoch in range(10):
    for rows in torch.randperm(len(x_train)).split(100):
        y_pred = model(x_train[rows])
        loss = loss_fn(y_pred, y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"Epoch {epoch}: loss {loss.item():.3f}")
with torch.no_grad():
    right = (model(x_test) > 0.5) == (y_test > 0.5)
print(f"final accuracy {right.float().mean().item():.4f}")
