"""Deep residual layers that all begin as the identity: each is scaled by a weight of zero (ReZero).

Expected: test accuracy > 0.74 (chance is 0.10).
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


class ReZeroLayer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.resweight = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return x + self.resweight * torch.relu(self.linear(x))


def build(width, depth):
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, width),
        *(ReZeroLayer(width) for _ in range(depth)),
        nn.Linear(width, 10),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--depth", type=int, default=12)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    data = fashion_mnist.load_subset()
    x, x_test = (
        torch.from_numpy(i).float().sub(73).div(90) for i in (data.train_images, data.test_images)
    )
    y, y_test = (torch.from_numpy(i).long() for i in (data.train_labels, data.test_labels))
    loader = DataLoader(TensorDataset(x, y), batch_size=100, shuffle=True)
    model = build(args.width, args.depth)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=1e-2)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(inputs), labels)
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
        print(f"epoch {epoch}: loss {loss.item():.4f}, accuracy {accuracy:.4f}")
    gates = [layer.resweight.item() for layer in model if isinstance(layer, ReZeroLayer)]
    print("gates:", " ".join(f"{g:.3f}" for g in gates))
    print(f"test accuracy: {accuracy:.4f}")


if __name__ == "__main__":
    main()
