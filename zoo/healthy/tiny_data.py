"""Sixty plants with thirteen measurements each: a small network with much regularization.

Expected: test accuracy > 0.80 (chance is 0.33).
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=60)
parser.add_argument("--hidden", type=int, default=16)
args = parser.parse_args()
torch.manual_seed(args.seed)

# three species; measurements of very different size and correlated with each other
scale = torch.logspace(-2, 3, 13)
offset = 3 * scale
centers = 0.9 * torch.randn(3, 13)
mixing = torch.eye(13) + 0.2 * torch.randn(13, 13)


def gather(n):
    species = torch.arange(n) % 3
    return (centers[species] + torch.randn(n, 13) @ mixing) * scale + offset, species


x_train, y_train = gather(60)
x_test, y_test = gather(300)
mean, std = x_train.mean(0), x_train.std(0)
x_train, x_test = (x_train - mean) / std, (x_test - mean) / std

model = nn.Sequential(
    nn.Linear(13, args.hidden),
    nn.ReLU(),
    nn.Dropout(0.3),
    nn.Linear(args.hidden, 3),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.1)
for epoch in range(args.epochs):
    model.train()
    for batch in torch.randperm(60).split(20):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x_train[batch]), y_train[batch])
        loss.backward()
        optimizer.step()
    if epoch % 15 == 14:
        print(f"epoch {epoch + 1}: loss {loss.item():.3f}")

model.eval()
with torch.no_grad():
    print(f"training accuracy: {(model(x_train).argmax(1) == y_train).float().mean().item():.4f}")
    accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
print(f"test accuracy: {accuracy:.4f}")
