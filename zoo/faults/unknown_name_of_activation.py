"""The configuration asks for an activation by a name that is not known, and silently gets none.

expects: S001
place:
source: look-ups in configurations that fall back instead of failing
kind: nonlinearity
shows: final accuracy higher
"""

import argparse
import json

import torch
from torch import nn

CONFIG = json.loads('{"hidden": [48, 48], "activation": "ReLu", "lr": 0.005, "epochs": 8}')
ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "gelu": nn.GELU}


def build(inputs, outputs, name):
    activation = ACTIVATIONS.get(name, nn.Identity)
    model = nn.Sequential()
    for i, width in enumerate(CONFIG["hidden"]):
        model.add_module(f"fc{i}", nn.Linear(inputs, width))
        model.add_module(f"act{i}", activation())
        inputs = width
    model.add_module("out", nn.Linear(inputs, outputs))
    return model


def checkerboard(n):
    x = 4 * torch.rand(n, 2) - 2
    return x, x.floor().sum(1).long() % 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    name = CONFIG["activation"].lower() if args.healthy else CONFIG["activation"]
    model = build(2, 2, name)
    x, y = checkerboard(2000)
    x_val, y_val = checkerboard(500)
    optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"])
    for epoch in range(CONFIG["epochs"]):
        for batch in torch.randperm(2000).split(50):
            loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        print(f"final accuracy {(model(x_val).argmax(1) == y_val).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
