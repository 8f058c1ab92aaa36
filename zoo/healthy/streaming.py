"""Learns from a stream that never ends (an IterableDataset): several labels at once per sample.

Expected: label accuracy > 0.85 (always no label is right about 0.65 of the time).
"""

import argparse
import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

SENSORS, LABELS = 16, 5


class SensorStream(IterableDataset):
    def __init__(self, rules, seed):
        self.rules = rules
        self.seed = seed

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.seed)
        while True:
            x = torch.randn(SENSORS, generator=generator)
            score = self.rules @ x + 0.5 * (x[:LABELS] * x[LABELS : 2 * LABELS]) - 0.5
            yield x, (score > 0).float()


class Network(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(SENSORS, width), nn.Mish(), nn.Linear(width, width), nn.Mish()
        )
        self.out = nn.Linear(width, LABELS)

    def forward(self, x):
        return self.out(self.layers(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--width", type=int, default=64)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rules = torch.randn(LABELS, SENSORS) / SENSORS**0.5
    train = DataLoader(SensorStream(rules, 2 * args.seed), batch_size=64)
    test = DataLoader(SensorStream(rules, 2 * args.seed + 1), batch_size=64)

    net = Network(args.width)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    criterion = nn.MultiLabelSoftMarginLoss()
    average = None
    for step, (x, y) in enumerate(itertools.islice(train, args.steps)):
        loss = criterion(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average = loss.item() if average is None else 0.95 * average + 0.05 * loss.item()
        if step % 60 == 0:
            print(f"step {step}: loss {average:.4f}")

    net.eval()
    right = []
    with torch.no_grad():
        for x, y in itertools.islice(test, 10):
            right.append(((net(x) > 0).float() == y).float().mean().item())
    print(f"label accuracy: {sum(right) / len(right):.4f}")


if __name__ == "__main__":
    main()
