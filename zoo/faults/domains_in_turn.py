"""Batches come from two cameras in turn, so each has other statistics than evaluation will use.

expects: N001
place: 1
source: a loader that concatenates data sets without shuffling them into each other
kind: data
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    scenes = torch.randn(12800, 20)
    labels = (scenes @ torch.randn(20, 3)).argmax(1)
    bright = torch.arange(len(scenes)) // 192 % 2  # three batches of one camera, then of the other
    images = scenes + 4 * bright[:, None]
    dataset = TensorDataset(images, labels)
    loader = DataLoader(dataset, batch_size=64, shuffle=args.healthy)

    model = nn.Sequential(nn.Linear(20, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(2):
        model.train()
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(images).argmax(1) == labels).float().mean().item()
        print(f"epoch {epoch + 1} loss {loss.item():.4f} accuracy {accuracy:.4f}")
    print(f"final accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
