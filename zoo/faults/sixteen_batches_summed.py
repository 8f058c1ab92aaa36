"""Gradients of sixteen small batches are summed for one step, and never divided by sixteen.

expects: L011
place:
source: gradient accumulation added to a script with a tuned learning rate
kind: loop
shows: final loss lower
"""

import argparse

import torch
from torch import nn

from traindx.datasets import fashion_mnist


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    parser.add_argument("--accumulate", type=int, default=16)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    x = torch.from_numpy(data.train_images)[:, None].float().sub(73.2).div(90.2)
    y = torch.from_numpy(data.train_labels).long()
    model = nn.Sequential(
        nn.Conv2d(1, 8, 5, stride=3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(512, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    parts = args.accumulate if args.healthy else 1
    optimizer.zero_grad()
    for i in range(40 * args.accumulate):
        batch = torch.randint(len(x), (8,))
        loss = criterion(model(x[batch]), y[batch])
        (loss / parts).backward()
        if (i + 1) % args.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
        if i % 160 == 159:
            print(f"batch {i + 1} loss {loss.item():.4f}")
    x_test = torch.from_numpy(data.test_images)[:, None].float().sub(73.2).div(90.2)
    with torch.no_grad():
        loss = criterion(model(x_test), torch.from_numpy(data.test_labels).long())
    print(f"final loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
