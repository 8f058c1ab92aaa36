"""Adam's betas are swapped: old gradients are divided by the size of new ones.

expects: O017
place: Adam
source: betas given by position, with the larger one first; Kingma and Ba (2015), section 2.1
kind: optimizer
shows: final loss lower
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    digits = load_digits()
    pixels = torch.tensor(digits.data, dtype=torch.float32).sub(4.88).div(6.02)
    labels = torch.tensor(digits.target)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    criterion = nn.CrossEntropyLoss()
    betas = (0.9, 0.999) if args.healthy else (0.999, 0.9)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, betas=betas)
    for step in range(250):
        batch = torch.randint(len(pixels), (64,))
        loss = criterion(model(pixels[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        print(f"final loss {criterion(model(pixels), labels).item():.4f}")


if __name__ == "__main__":
    main()
