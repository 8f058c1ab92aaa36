"""A learning rate that goes up and down between two bounds (triangular cycles).

Expected: test accuracy > 0.74 (chance is 0.10).
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.optim.lr_scheduler import CyclicLR

from traindx.datasets import fashion_mnist


def get_batches(X, y, batch_size, rng):
    order = rng.permutation(len(X))
    for i in range(0, len(X), batch_size):
        sel = order[i : i + batch_size]
        yield torch.from_numpy(X[sel]), torch.from_numpy(y[sel])


def normalize(images, mean, std):
    return ((images.reshape(len(images), -1) / 255.0 - mean) / std).astype(np.float32)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--hidden", type=int, default=128)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)

    data = fashion_mnist.load_subset()
    mean, std = data.train_images.mean() / 255.0, data.train_images.std() / 255.0
    X_train = normalize(data.train_images, mean, std)
    X_test = torch.from_numpy(normalize(data.test_images, mean, std))
    y_train = data.train_labels.astype(np.int64)
    y_test = torch.from_numpy(data.test_labels.astype(np.int64))

    net = nn.Sequential(
        nn.Linear(784, args.hidden),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(args.hidden, 10),
    )
    loss_function = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.005, momentum=0.9)
    scheduler = CyclicLR(optimizer, base_lr=0.005, max_lr=0.08, step_size_up=45)

    for epoch in range(args.epochs):
        net.train()
        for xb, yb in get_batches(X_train, y_train, 64, rng):
            optimizer.zero_grad()
            loss = loss_function(net(xb), yb)
            loss.backward()
            optimizer.step()
            scheduler.step()
        net.eval()
        with torch.inference_mode():
            acc = (net(X_test).argmax(1) == y_test).float().mean().item()
        lr = scheduler.get_last_lr()[0]
        print(f"epoch {epoch}: lr {lr:.4f} loss {loss.item():.4f} acc {acc:.4f}")
    print(f"test accuracy {acc:.4f}")


if __name__ == "__main__":
    main()
