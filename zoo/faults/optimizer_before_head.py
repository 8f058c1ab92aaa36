"""The classifier's head is replaced after the optimizer was built, so no step moves the new one.

expects: O003
place: head.weight
source: the order of construction that the PyTorch documentation of torch.optim warns of
kind: optimizer
shows: provable: the new head keeps its first weights, though its gradient is there at every step
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

from traindx.datasets import fashion_mnist


class Net(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.hidden = nn.Linear(784, 64)
        self.head = nn.Linear(64, num_classes)

    def forward(self, x):
        return self.head(torch.relu(self.hidden(x)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    images = torch.from_numpy(data.train_images).float().flatten(1).sub(73.2).div(90.2)
    labels = torch.from_numpy(data.train_labels).long()

    net = Net(num_classes=1000)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    net.head = nn.Linear(64, 10)
    if args.healthy:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

    for step in range(80):
        batch = torch.randint(len(images), (64,))
        loss = F.cross_entropy(net(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            print(f"step {step + 1} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
