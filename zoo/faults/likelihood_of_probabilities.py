"""The likelihood loss is given probabilities in place of their logarithms, so it turns negative.

expects: L002
place:
source: nn.NLLLoss taken for a loss that applies the logarithm itself
kind: loss-pairing
shows: final loss lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

from traindx.datasets import fashion_mnist


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    images = torch.from_numpy(data.train_images).float().flatten(1).sub(73.2).div(90.2)
    labels = torch.from_numpy(data.train_labels).long()

    net = Net()
    output = nn.LogSoftmax(dim=1) if args.healthy else nn.Softmax(dim=1)
    criterion = nn.NLLLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for step in range(120):
        batch = torch.randint(len(images), (64,))
        loss = criterion(output(net(images[batch])), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            print(f"step {step + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        print(f"final loss {F.cross_entropy(net(images), labels).item():.4f}")


if __name__ == "__main__":
    main()
