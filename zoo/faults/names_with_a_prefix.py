"""The names in a checkpoint begin with "module.", and loading it loosely loads nothing.

expects: E014
place:
source: weights of a parallel training, and strict=False to make the error go away
kind: checkpoint
shows: final accuracy higher
"""

import argparse
import io

import torch
from sklearn.datasets import load_digits
from torch import nn


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 16, 3, stride=2, padding=1)
        self.fc = nn.Linear(256, 10)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        return self.fc(torch.relu(self.conv2(x)).flatten(1))


def fit(model, optimizer, x, y, steps):
    for step in range(steps):
        batch = torch.randint(len(x), (32,))
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
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

    digits = load_digits()
    order = torch.randperm(len(digits.target))
    x = torch.tensor(digits.images).float()[order, None] / 8 - 1
    y = torch.tensor(digits.target)[order]

    # yesterday, on many devices
    pretrained = nn.Sequential()
    pretrained.add_module("module", Backbone())
    optimizer = torch.optim.Adam(pretrained.parameters(), lr=3e-3)
    fit(pretrained, optimizer, x[:1400], y[:1400], 150)
    file = io.BytesIO()
    torch.save(pretrained.state_dict(), file)

    # today, on forty labelled samples of the new customer
    file.seek(0)
    weights = torch.load(file, weights_only=True)
    if args.healthy:
        weights = {name.removeprefix("module."): value for name, value in weights.items()}
    model = Backbone()
    model.load_state_dict(weights, strict=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    fit(model, optimizer, x[1400:1440], y[1400:1440], 50)
    with torch.no_grad():
        accuracy = (model(x[1440:]).argmax(1) == y[1440:]).float().mean().item()
    print(f"final accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
