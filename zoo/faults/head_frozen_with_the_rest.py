"""All parameters with "fc" in their names are frozen, the new last layer among them.

expects: S013
place: fc
source: names matched to freeze a backbone, with the test the wrong way round
kind: optimizer
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

from traindx.datasets import fashion_mnist


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 5, stride=2)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2)
        self.fc = nn.Linear(16 * 25, classes)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        return self.fc(x.flatten(1))


def fit(model, x, y, steps, lr):
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trainable, lr=lr, momentum=0.9)
    for step in range(steps):
        batch = torch.randint(len(x), (32,))
        loss = F.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    x = torch.from_numpy(data.train_images)[:, None].float().sub(73.2).div(90.2)
    y = torch.from_numpy(data.train_labels).long()
    x_test = torch.from_numpy(data.test_images)[:, None].float().sub(73.2).div(90.2)
    y_test = torch.from_numpy(data.test_labels).long()

    model = Net(5)
    known = y < 5
    fit(model, x[known], y[known], 100, 0.02)

    model.fc = nn.Linear(16 * 25, 10)
    for name, parameter in model.named_parameters():
        is_head = "fc" in name
        parameter.requires_grad = is_head if args.healthy else not is_head
    fit(model, x, y, 100, 1e-3)
    with torch.no_grad():
        print(f"final accuracy {(model(x_test).argmax(1) == y_test).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
