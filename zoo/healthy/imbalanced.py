"""Rare fraud among payments: three in a hundred, drawn more often by a weighted sampler.

Expected: average precision > 0.55 (chance is 0.03).
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler


def payments(n, direction):
    fraud = torch.rand(n) < 0.03
    x = torch.randn(n, 20)
    x[:, :10] += torch.where(fraud[:, None], direction, torch.zeros(10))
    x[:, 10] = torch.where(fraud, x[:, 10].abs() + 0.8, x[:, 10])
    return x, fraud.float()


def average_precision(scores, labels):
    ranked = labels[scores.argsort(descending=True)]
    precision = ranked.cumsum(0) / torch.arange(1, len(ranked) + 1)
    return ((precision * ranked).sum() / ranked.sum()).item()


class Net(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.bn = nn.BatchNorm1d(20)
        self.fc1 = nn.Linear(20, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, 1)
        self.dropout = nn.Dropout(0.2)

    def forward(self, x):
        x = F.elu(self.fc1(self.bn(x)))
        x = F.elu(self.fc2(self.dropout(x)))
        return self.out(x).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--hidden", type=int, default=32)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    direction = 0.7 * F.normalize(torch.randn(10), dim=0) * 10**0.5
    x, y = payments(8000, direction)
    x_test, y_test = payments(4000, direction)
    weights = torch.where(y > 0, 0.3 / y.mean(), 0.7 / (1 - y.mean()))
    sampler = WeightedRandomSampler(weights, num_samples=len(y))
    loader = DataLoader(TensorDataset(x, y), batch_size=128, sampler=sampler)

    model = Net(args.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(args.epochs):
        model.train()
        seen = 0.0
        for features, labels in loader:
            loss = F.binary_cross_entropy_with_logits(model(features), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += labels.sum().item()
        model.eval()
        with torch.no_grad():
            ap = average_precision(model(x_test), y_test)
        print(f"epoch {epoch}: loss {loss.item():.4f}, fraud seen {seen:.0f}, AP {ap:.4f}")
    print(f"average precision: {ap:.4f}")


if __name__ == "__main__":
    main()
