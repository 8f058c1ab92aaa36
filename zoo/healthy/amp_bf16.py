"""A network trained under autocast in bfloat16.

Expected: test accuracy > 0.78 (chance is 0.10).
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


def loaders(batch_size):
    data = fashion_mnist.load_subset()
    for images, labels, shuffle in (
        (data.train_images, data.train_labels, True),
        (data.test_images, data.test_labels, False),
    ):
        pixels = torch.from_numpy(images).float().sub(73.2).div(90.2)
        dataset = TensorDataset(pixels, torch.from_numpy(labels).long())
        yield DataLoader(dataset, batch_size=batch_size, shuffle=shuffle)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    train_loader, test_loader = loaders(batch_size=125)
    model = nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 128),
        nn.BatchNorm1d(128),
        nn.ReLU(),
        nn.Linear(128, 64),
        nn.BatchNorm1d(64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )
    loss_fn = nn.CrossEntropyLoss(label_smoothing=0.05)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)

    for epoch in range(args.epochs):
        model.train()
        for x, y in train_loader:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = loss_fn(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()

        model.eval()
        correct = 0
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            for x, y in test_loader:
                correct += (model(x).argmax(dim=1) == y).sum().item()
        accuracy = correct / len(test_loader.dataset)
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}, accuracy {accuracy:.4f}")

    print(f"test accuracy: {accuracy:.4f}")


if __name__ == "__main__":
    main()
