"""Metric learning with triplets: all of a batch that violate the margin.

Judged by the fifty nearest neighbours of each test image.

Expected: precision at 50 > 0.66 (chance is 0.10; the images themselves about 0.47).
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

from traindx.datasets import fashion_mnist


class EmbeddingNet(nn.Module):
    def __init__(self, hidden=128, dim=32):
        super().__init__()
        self.fc1 = nn.Linear(784, hidden)
        self.fc2 = nn.Linear(hidden, dim)

    def forward(self, x):
        return F.normalize(self.fc2(F.relu(self.fc1(x))), dim=1)


def batch_all_loss(z, labels, margin=0.3):
    """The mean over all triplets of the batch that violate the margin."""
    distance = torch.cdist(z, z)
    same = labels[:, None] == labels[None, :]
    positive = same & ~torch.eye(len(z), dtype=torch.bool)
    triplets = positive[:, :, None] & ~same[:, None, :]
    loss = F.relu(distance[:, :, None] - distance[:, None, :] + margin)[triplets]
    return loss.sum() / (loss > 0).sum().clamp_min(1)


def pk_batch(by_class, p=6, k=8):
    """P classes with K images each."""
    rows, labels = [], []
    for c in torch.randperm(len(by_class))[:p].tolist():
        images = by_class[c]
        rows.append(images[torch.randperm(len(images))[:k]])
        labels += [c] * k
    return torch.cat(rows), torch.tensor(labels)


@torch.no_grad()
def r_precision(model, images, labels, r=50):
    """The share of the same kind among the nearest."""
    model.eval()
    z = model(images)
    distance = torch.cdist(z, z).fill_diagonal_(float("inf"))
    nearest = distance.topk(r, largest=False).indices
    return (labels[nearest] == labels[:, None]).float().mean().item()


def main(seed, steps, hidden):
    torch.manual_seed(seed)
    data = fashion_mnist.load_subset()
    x = (torch.tensor(data.train_images).flatten(1).float() - 73) / 90
    y = torch.tensor(data.train_labels).long()
    by_class = [x[y == c] for c in range(10)]
    x_test = (torch.tensor(data.test_images).flatten(1).float() - 73) / 90
    y_test = torch.tensor(data.test_labels).long()

    model = EmbeddingNet(hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    print(f"before: {r_precision(model, x_test, y_test):.4f}")
    for step in range(1, steps + 1):
        model.train()
        images, labels = pk_batch(by_class)
        loss = batch_all_loss(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    print(f"precision at 50: {r_precision(model, x_test, y_test):.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--hidden", type=int, default=128)
    main(**vars(parser.parse_args()))
