"""Trains, saves everything, builds all of it anew from the checkpoint, and trains on.

Expected: test accuracy > 0.76 (chance is 0.10).
"""

import argparse
import os
import tempfile

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


def build(width, total_steps):
    model = nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, width),
        nn.BatchNorm1d(width),
        nn.ReLU(),
        nn.Linear(width, 10),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=total_steps)
    return model, optimizer, scheduler


def train_one_epoch(model, optimizer, scheduler, loader):
    model.train()
    for images, labels in loader:
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    return loss.item()


@torch.no_grad()
def test(model, images, labels):
    model.eval()
    return (model(images).argmax(1) == labels).float().mean().item()


def save_checkpoint(path, epoch, model, optimizer, scheduler):
    torch.save(
        {
            "epoch": epoch,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "rng": torch.get_rng_state(),
        },
        path,
    )


def load_checkpoint(path, model, optimizer, scheduler):
    checkpoint = torch.load(path, weights_only=True)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    scheduler.load_state_dict(checkpoint["scheduler"])
    torch.set_rng_state(checkpoint["rng"])
    return checkpoint["epoch"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--width", type=int, default=100)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    data = fashion_mnist.load_subset()
    images = (torch.tensor(data.train_images).float() - 73) / 90
    test_images = (torch.tensor(data.test_images).float() - 73) / 90
    test_labels = torch.tensor(data.test_labels).long()
    train_set = TensorDataset(images, torch.tensor(data.train_labels).long())
    loader = DataLoader(train_set, batch_size=100, shuffle=True)

    epochs = 4
    states = build(args.width, epochs * len(loader))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint.pt")
        for epoch in range(epochs // 2):
            loss = train_one_epoch(*states, loader)
            print(f"epoch {epoch}: loss {loss:.4f}")
        accuracy = test(states[0], test_images, test_labels)
        save_checkpoint(path, epochs // 2, *states)

        states = build(args.width, epochs * len(loader))
        start = load_checkpoint(path, *states)
    print(f"resumed at epoch {start}; accuracy {accuracy:.4f}")
    assert test(states[0], test_images, test_labels) == accuracy
    for epoch in range(start, epochs):
        loss = train_one_epoch(*states, loader)
        print(f"epoch {epoch}: loss {loss:.4f}")
    print(f"test accuracy: {test(states[0], test_images, test_labels):.4f}")


if __name__ == "__main__":
    main()
