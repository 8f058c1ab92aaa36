"""Training makes a network of its own, and the one that is tested was never trained.

expects: E006
place:
source: a name that is used twice, in a notebook and in its functions
kind: checkpoint
shows: final accuracy higher
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


def build():
    return nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))


def train(pixels, labels):
    model = build()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(200):
        batch = torch.randint(len(pixels), (64,))
        loss = nn.functional.cross_entropy(model(pixels[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    digits = load_digits()
    pixels = torch.tensor(digits.data, dtype=torch.float32).sub(4.88).div(6.02)
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(pixels))
    trained, tested = order[:1400], order[1400:]

    model = build()
    result = train(pixels[trained], labels[trained])
    if args.healthy:
        model = result
    model.eval()
    with torch.no_grad():
        right = model(pixels[tested]).argmax(1) == labels[tested]
    print(f"final accuracy {right.float().mean().item():.4f}")


if __name__ == "__main__":
    main()
