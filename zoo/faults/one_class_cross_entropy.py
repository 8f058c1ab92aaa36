"""A yes-or-no question with one output goes to the cross-entropy of classes, which is always zero.

expects: L003
place:
source: a loss of several classes taken for a binary one, with targets made float to fit
kind: loss-pairing
shows: final accuracy higher
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class Churn(nn.Module):
    """Whether a customer leaves, from eight numbers."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 32), nn.Linear(32, 32)])
        self.answer = nn.Linear(32, 1)

    def forward(self, x):
        for layer in self.layers:
            x = F.gelu(layer(x))
        return self.answer(x)


def evaluate(model, loader):
    right = total = 0
    with torch.no_grad():
        for x, y in loader:
            right += ((model(x) > 0) == (y > 0.5)).sum().item()
            total += len(y)
    return right / total


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    customers = torch.randn(2000, 8)
    leaves = (customers[:, :3].prod(1) + customers[:, 3] > 0.2).float().unsqueeze(1)
    train, test = random_split(TensorDataset(customers, leaves), [1600, 400])
    model = Churn()
    criterion = F.binary_cross_entropy_with_logits if args.healthy else F.cross_entropy
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(6):
        for x, y in DataLoader(train, batch_size=40, shuffle=True):
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")
    print(f"final accuracy {evaluate(model, DataLoader(test, batch_size=200)):.4f}")
