"""A classifier whose batches of 96 are gathered from four micro-batches of 24.

Expected: test accuracy > 0.75 (chance is 0.10).
"""

import argparse

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist

ACCUMULATION_STEPS = 4
MICRO_BATCH_SIZE = 24


def prepare(images, labels):
    return TensorDataset(torch.tensor(images).float() / 255, torch.tensor(labels).long())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    train_set = prepare(data.train_images, data.train_labels)
    test_images, test_labels = prepare(data.test_images, data.test_labels).tensors
    loader = DataLoader(train_set, MICRO_BATCH_SIZE, shuffle=True, drop_last=True)

    model = nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 128),
        nn.LayerNorm(128),
        nn.GELU(),
        nn.Linear(128, 10),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)

    updates = 0
    optimizer.zero_grad()
    for epoch in range(args.epochs):
        model.train()
        for i, (images, labels) in enumerate(loader):
            loss = cross_entropy(model(images), labels) / ACCUMULATION_STEPS
            loss.backward()
            if (i + 1) % ACCUMULATION_STEPS == 0 or i + 1 == len(loader):
                optimizer.step()
                optimizer.zero_grad()
                updates += 1

        model.eval()
        with torch.no_grad():
            accuracy = (model(test_images).argmax(1) == test_labels).float().mean().item()
        print(f"epoch {epoch}: {updates} updates, accuracy {accuracy:.4f}")
    print(f"test accuracy: {accuracy:.4f}")


if __name__ == "__main__":
    main()
