"""The pixels go into the network as numbers from 0 to 255.

expects: L007
place: fc1
source: a forgotten division by 255, the commonest of missing preprocessing
kind: preprocessing
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        return self.fc2(torch.tanh(self.fc1(x)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    scale = 255.0 if args.healthy else 1.0
    data = fashion_mnist.load_subset()
    train_x = torch.from_numpy(data.train_images).float().flatten(1) / scale
    test_x = torch.from_numpy(data.test_images).float().flatten(1) / scale
    train_y = torch.from_numpy(data.train_labels).long()
    test_y = torch.from_numpy(data.test_labels).long()

    net = Net()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(2):
        for x, y in DataLoader(TensorDataset(train_x, train_y), batch_size=100, shuffle=True):
            loss = criterion(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        accuracy = (net(test_x).argmax(1) == test_y).float().mean().item()
    print(f"final accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
