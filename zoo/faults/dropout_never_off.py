"""Dropout is called as a function that is not told of evaluation, so it never stops dropping.

expects: E003
place:
source: F.dropout, whose argument training is True unless one passes self.training
kind: mode
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

from traindx.datasets import fashion_mnist


class Perceptron(nn.Module):
    def __init__(self, always):
        super().__init__()
        self.always = always
        self.fc1 = nn.Linear(784, 128)
        self.fc2 = nn.Linear(128, 64)
        self.fc3 = nn.Linear(64, 10)

    def forward(self, x):
        dropping = self.always or self.training
        x = F.dropout(F.relu(self.fc1(x)), p=0.5, training=dropping)
        x = F.dropout(F.relu(self.fc2(x)), p=0.5, training=dropping)
        return self.fc3(x)


@torch.no_grad()
def accuracy(model, images, labels):
    model.eval()
    right = (model(images).argmax(1) == labels).float().mean().item()
    model.train()
    return right


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    images = torch.from_numpy(data.train_images).float().flatten(1).sub(73.2).div(90.2)
    labels = torch.from_numpy(data.train_labels).long()
    test_images = torch.from_numpy(data.test_images).float().flatten(1).sub(73.2).div(90.2)
    test_labels = torch.from_numpy(data.test_labels).long()

    model = Perceptron(always=not args.healthy)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(160):
        batch = torch.randint(len(images), (64,))
        loss = F.cross_entropy(model(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 39:
            score = accuracy(model, test_images, test_labels)
            print(f"step {step + 1} loss {loss.item():.4f} accuracy {score:.4f}")
    print(f"final accuracy {score:.4f}")


if __name__ == "__main__":
    main()
