"""A warmup over a number of batches is stepped once an epoch, so that it never ends.

expects: O005
place: SGD
source: the order of loops for schedulers that count epochs, used for one that counts batches
kind: schedule
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.optim.lr_scheduler import LinearLR
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    images = torch.from_numpy(data.train_images).float().flatten(1).sub(73.2).div(90.2)
    labels = torch.from_numpy(data.train_labels).long()
    loader = DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True)
    model = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    warmup = LinearLR(optimizer, start_factor=0.01, total_iters=40)
    for epoch in range(3):
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if args.healthy or i + 1 == len(loader):
                warmup.step()
        print(f"epoch {epoch} loss {loss.item():.4f} lr {warmup.get_last_lr()[0]:.4g}")
    test_images = torch.from_numpy(data.test_images).float().flatten(1).sub(73.2).div(90.2)
    with torch.no_grad():
        right = model(test_images).argmax(1) == torch.from_numpy(data.test_labels)
    print(f"final accuracy {right.float().mean().item():.4f}")


if __name__ == "__main__":
    main()
