"""Class 0 is a class like the others, and the loss was told to ignore it.

expects: L019
place:
source: ignore_index=0 copied from a model of language, in which 0 is the padding
kind: data
shows: final accuracy higher
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

from traindx.datasets import fashion_mnist


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, stride=2)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2)
        self.out = nn.Linear(16 * 36, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        return self.out(x.flatten(1))


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

    options = {} if args.healthy else {"ignore_index": 0}
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for step in range(150):
        i = torch.randint(len(x), (64,))
        loss = F.cross_entropy(net(x[i]), y[i], **options)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        print(f"final accuracy {(net(x_test).argmax(1) == y_test).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
