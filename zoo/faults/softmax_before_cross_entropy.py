"""The model ends in a softmax, and cross-entropy applies another one to the probabilities.

expects: L002
place:
source: the commonest wrong pair of output and loss in public collections of faulty networks
kind: loss-pairing
shows: provable: cross-entropy of probabilities of 10 classes cannot fall below 1.461
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    images = torch.from_numpy(data.train_images).float().flatten(1).sub(73.2).div(90.2)
    labels = torch.from_numpy(data.train_labels).long()
    loader = DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True)

    model = nn.Sequential(
        nn.Linear(784, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
        nn.Identity() if args.healthy else nn.Softmax(dim=1),
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        correct = 0
        for x, y in loader:
            output = model(x)
            loss = criterion(output, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            correct += (output.argmax(1) == y).sum().item()
        print(f"epoch {epoch + 1} loss {loss.item():.4f} accuracy {correct / len(images):.4f}")


if __name__ == "__main__":
    main()
