"""Biases that start at -3 instead of 0 keep every unit of the second layer silent for good.

expects: F003
place: body.3
source: an `init_weights` that fills biases with a constant (CS231n, on ReLU units that die)
kind: init
shows: final loss lower
"""

import argparse

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Linear(64, 3)
        nn.init.constant_(self.body[2].bias, bias)

    def forward(self, x):
        return self.head(self.body(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    inputs = torch.randn(4096, 20)
    labels = (inputs @ torch.randn(20, 3)).argmax(1)
    model = Classifier(bias=0.0 if args.healthy else -3.0)
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(120):
        batch = torch.randint(len(inputs), (256,))
        output = model(inputs[batch])
        loss = loss_fn(output, labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 39:
            right = (output.argmax(1) == labels[batch]).float().mean().item()
            print(f"step {step + 1} loss {loss.item():.4f} accuracy {right:.3f}")
    with torch.no_grad():
        print(f"final loss {loss_fn(model(inputs), labels).item():.4f}")


if __name__ == "__main__":
    main()
