"""Dropout is given the probability to keep a unit, 0.95, and drops nearly all of them.

expects: E008
place: drop
source: the argument of dropout, which meant the opposite in an older framework
kind: architecture
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn

from traindx.datasets import fashion_mnist


class Net(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.fc1 = nn.Linear(784, 64)
        self.fc2 = nn.Linear(64, 64)
        self.out = nn.Linear(64, 10)
        self.drop = nn.Dropout(p)

    def forward(self, x):
        x = self.drop(torch.relu(self.fc1(x)))
        x = self.drop(torch.relu(self.fc2(x)))
        return self.out(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    x = torch.from_numpy(data.train_images).float().flatten(1).sub(73.2).div(90.2)
    y = torch.from_numpy(data.train_labels).long()
    keep = 0.95
    model = Net(1 - keep if args.healthy else keep)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.train()
    for step in range(200):
        i = torch.randint(len(x), (64,))
        loss = nn.functional.cross_entropy(model(x[i]), y[i])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    model.eval()
    x_test = torch.from_numpy(data.test_images).float().flatten(1).sub(73.2).div(90.2)
    with torch.no_grad():
        right = model(x_test).argmax(1) == torch.from_numpy(data.test_labels)
    print(f"final accuracy {right.float().mean().item():.4f}")


if __name__ == "__main__":
    main()
