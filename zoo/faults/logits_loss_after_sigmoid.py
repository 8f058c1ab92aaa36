"""The model returns probabilities, and the loss that expects logits applies a sigmoid once more.

expects: L003
place:
source: BCELoss replaced by BCEWithLogitsLoss on advice, and the model left as it was
kind: loss-pairing
shows: final loss lower
"""

import argparse

import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.nn import functional as F


class Tumor(nn.Module):
    def __init__(self, features, probabilities):
        super().__init__()
        self.probabilities = probabilities
        self.fc1 = nn.Linear(features, 32)
        self.fc2 = nn.Linear(32, 1)

    def forward(self, x):
        score = self.fc2(F.relu(self.fc1(x))).squeeze(-1)
        return torch.sigmoid(score) if self.probabilities else score


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    table = load_breast_cancer()
    order = torch.randperm(len(table.target))
    x = torch.tensor(table.data, dtype=torch.float32)[order]
    y = torch.tensor(table.target, dtype=torch.float32)[order]
    train, test = slice(0, 430), slice(430, None)
    x = (x - x[train].mean(0)) / x[train].std(0)

    model = Tumor(x.shape[1], probabilities=not args.healthy)
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(12):
        for batch in torch.randperm(430).split(43):
            loss = criterion(model(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        print(f"final loss {criterion(model(x[test]), y[test]).item():.4f}")


if __name__ == "__main__":
    main()
