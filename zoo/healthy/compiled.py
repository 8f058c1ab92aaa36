"""A model given to torch.compile (here with the backend that needs no C++ compiler).

Expected: test accuracy > 0.74 (chance is 0.10).
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

from traindx.datasets import fashion_mnist


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc1 = nn.Linear(784, width)
        self.norm = nn.LayerNorm(width)
        self.fc2 = nn.Linear(width, 10)

    def forward(self, x):
        return self.fc2(F.gelu(self.norm(self.fc1(x))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    data = fashion_mnist.load_subset()
    x = (torch.tensor(data.train_images).flatten(1).float() - 73) / 90
    x_test = (torch.tensor(data.test_images).flatten(1).float() - 73) / 90
    y, y_test = torch.tensor(data.train_labels).long(), torch.tensor(data.test_labels).long()
    net = Net(args.width)
    model = torch.compile(net, backend="eager")
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        for idx in torch.randperm(len(x)).split(100):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")
    net.eval()
    with torch.no_grad():
        accuracy = (net(x_test).argmax(1) == y_test).float().mean().item()
    print(f"test accuracy: {accuracy:.4f}")


if __name__ == "__main__":
    main()
