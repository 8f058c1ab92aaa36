"""BatchNorm keeps no running statistics, and in use the samples come two at a time.

expects: N020
place: 1
source: track_running_stats=False, set to make a gap between training and evaluation go away
kind: normalization
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


def build(track):
    layers = []
    for inputs, outputs in ((24, 64), (64, 64)):
        layers += [
            nn.Linear(inputs, outputs, bias=False),
            nn.BatchNorm1d(outputs, track_running_stats=track),
            nn.ReLU(),
        ]
    return nn.Sequential(*layers, nn.Linear(64, 4))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = torch.randn(4000, 24)
    y = (x @ torch.randn(24, 4)).argmax(1)
    train = DataLoader(TensorDataset(x[:3200], y[:3200]), batch_size=64, shuffle=True)
    in_use = DataLoader(TensorDataset(x[3200:], y[3200:]), batch_size=2)
    model = build(track=args.healthy)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(4):
        model.train()
        for inputs, labels in train:
            loss = F.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        right = sum((model(i).argmax(1) == labels).sum().item() for i, labels in in_use)
    print(f"final accuracy {right / 800:.4f}")


if __name__ == "__main__":
    main()
