"""The optimizer steps before the gradients of the batch are there, on gradients just cleared.

expects: O004
place: SGD
source: the order of the four calls of a training loop, mixed up
kind: loop
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    x = torch.from_numpy(data.train_images).float().flatten(1).sub(73.2).div(90.2)
    x_test = torch.from_numpy(data.test_images).float().flatten(1).sub(73.2).div(90.2)
    y, y_test = (torch.from_numpy(k).long() for k in (data.train_labels, data.test_labels))

    net = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(2):
        for inputs, labels in DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True):
            optimizer.zero_grad()
            loss = loss_fn(net(inputs), labels)
            calls = [optimizer.step, loss.backward]
            if args.healthy:
                calls.reverse()
            for call in calls:
                call()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        print(f"final accuracy {(net(x_test).argmax(1) == y_test).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
