"""A spectrum is used as power, in which loud bands are millions of times larger than faint ones.

expects: L007
place: 0
source: a logarithm left out of a feature pipeline for sound
kind: preprocessing
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn


def spectra(n):
    """Power in 24 bands of two machines, one of which hums in a faint band."""
    faulty = torch.rand(n) < 0.5
    decibels = torch.linspace(60, 5, 24) + 6 * torch.randn(n, 24)
    decibels[:, 17] += torch.where(faulty, 14.0, 0.0)
    return 10 ** (decibels / 10), faulty.long()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    power, faulty = spectra(2400)
    features = (power.log10() - 3) if args.healthy else power
    model = nn.Sequential(
        nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 2)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(6):
        losses = []
        for rows in torch.randperm(1800).split(60):
            optimizer.zero_grad()
            loss = criterion(model(features[rows]), faulty[rows])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch + 1} mean loss {sum(losses) / len(losses):.4g}")
    with torch.no_grad():
        right = model(features[1800:]).argmax(1) == faulty[1800:]
    print(f"final accuracy {right.float().mean().item():.4f}")


if __name__ == "__main__":
    main()
