"""Twenty ReLU layers with the default weights give the same output for every input.

expects: F001
place: 0
source: a deep plain network built without a thought for its initialization (He et al. 2015)
kind: init
shows: final accuracy higher
"""

import argparse

import torch
import torch.nn as nn


def build(depth, width, he):
    layers = []
    for i in range(depth):
        layers += [nn.Linear(20 if i == 0 else width, width), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(width, 3))
    for layer in model:
        if he and isinstance(layer, nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    inputs = torch.randn(2048, 20)
    labels = (inputs @ torch.randn(20, 3)).argmax(1)
    model = build(20, 64, he=args.healthy)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for epoch in range(4):
        right = 0
        for batch in torch.randperm(len(inputs)).split(64):
            output = model(inputs[batch])
            loss = criterion(output, labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += (output.argmax(1) == labels[batch]).sum().item()
        print(f"epoch {epoch} loss {loss.item():.4f} accuracy {right / len(inputs):.3f}")
    print(f"final accuracy {right / len(inputs):.4f}")


if __name__ == "__main__":
    main()
