"""Batches of two, to save memory, leave BatchNorm nothing of the data but signs.

expects: N003
place: 1
source: a memory limit met by a smaller batch (Wu & He, "Group Normalization", ECCV 2018)
kind: normalization
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


def accuracy(model, inputs, labels):
    model.eval()
    with torch.no_grad():
        right = model(inputs).argmax(1) == labels
    model.train()
    return right.float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    inputs = torch.randn(4096, 20)
    labels = (inputs @ torch.randn(20, 3)).argmax(1)
    batch_size = 64 if args.healthy else 2
    model = nn.Sequential(
        nn.Linear(20, 32),
        nn.BatchNorm1d(32),
        nn.ReLU(),
        nn.Linear(32, 32),
        nn.BatchNorm1d(32),
        nn.ReLU(),
        nn.Linear(32, 3),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(400):
        batch = torch.randint(len(inputs), (batch_size,))
        loss = F.cross_entropy(model(inputs[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 99:
            print(f"step {step + 1} accuracy {accuracy(model, inputs, labels):.3f}")
    print(f"final accuracy {accuracy(model, inputs, labels):.4f}")


if __name__ == "__main__":
    main()
