"""Every step takes the first batch of a new iterator, which is always the same one.

expects: L018
place:
source: next(iter(loader)) inside of the training loop
kind: data
shows: final accuracy higher
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


def endless(loader):
    while True:
        yield from loader


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    parser.add_argument("--steps", type=int, default=150)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    digits = load_digits()
    order = torch.randperm(len(digits.target))
    x = torch.tensor(digits.data, dtype=torch.float32)[order] / 8 - 1
    y = torch.tensor(digits.target)[order]
    loader = DataLoader(TensorDataset(x[:1400], y[:1400]), batch_size=32)
    model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    batches = endless(loader)
    for step in range(args.steps):
        inputs, labels = next(batches if args.healthy else iter(loader))
        loss = F.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    with torch.no_grad():
        accuracy = (model(x[1400:]).argmax(1) == y[1400:]).float().mean().item()
    print(f"final accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
