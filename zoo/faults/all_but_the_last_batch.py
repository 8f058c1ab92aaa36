"""Gradients of four batches should add up, and are cleared at each of them.

expects: G011
place: SGD
source: gradient accumulation that was built into a loop without taking zero_grad out of it
kind: loop
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn

from traindx.datasets import fashion_mnist

PARTS = 8


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    images = torch.from_numpy(data.train_images).float().flatten(1).sub(73.2).div(90.2)
    labels = torch.from_numpy(data.train_labels).long()
    model = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    every = PARTS if args.healthy else 1
    for i in range(PARTS * 80):
        if i % every == 0:
            optimizer.zero_grad()
        batch = torch.randint(len(images), (8,))
        loss = criterion(model(images[batch]), labels[batch]) / PARTS
        loss.backward()
        if (i + 1) % PARTS == 0:
            optimizer.step()
        if (i + 1) % (PARTS * 20) == 0:
            print(f"batch {i + 1} loss {PARTS * loss.item():.4f}")
    test_images = torch.from_numpy(data.test_images).float().flatten(1).sub(73.2).div(90.2)
    with torch.no_grad():
        right = model(test_images).argmax(1) == torch.from_numpy(data.test_labels)
    print(f"final accuracy {right.float().mean().item():.4f}")


if __name__ == "__main__":
    main()
