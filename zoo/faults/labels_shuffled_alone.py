"""Inputs and labels are shuffled by two draws, so that each input has the label of another.

expects: L005
place:
source: shuffled labels, a fault that public collections inject and tools seldom find
kind: data
shows: final accuracy higher
"""

import argparse

import numpy as np
import torch
from torch import nn

from traindx.datasets import fashion_mnist


def shuffled(rng, images, labels, together):
    order = rng.permutation(len(images))
    return images[order], labels[order if together else rng.permutation(len(images))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)

    data = fashion_mnist.load_subset()
    images, labels = shuffled(rng, data.train_images, data.train_labels, together=args.healthy)
    x = torch.from_numpy(images).float().flatten(1).sub(73.2).div(90.2)
    y = torch.from_numpy(labels).long()
    x_test = torch.from_numpy(data.test_images).float().flatten(1).sub(73.2).div(90.2)
    y_test = torch.from_numpy(data.test_labels).long()

    model = nn.Sequential(nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 10))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(3):
        for i in range(0, len(x), 64):
            optimizer.zero_grad()
            loss = criterion(model(x[i : i + 64]), y[i : i + 64])
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
    print(f"final accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
