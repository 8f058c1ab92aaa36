"""Rare cases are copied to balance the classes, and only then is the validation set split off.

expects: L009
place:
source: oversampling before splitting, a leak that reviews of published models keep finding
kind: data
shows: final optimism lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


def cases(n, rare):
    """Forty noisy numbers, of which the first two say a little of the rare disease."""
    y = (torch.rand(n) < rare).long()
    x = torch.randn(n, 40)
    x[:, :2] += 1.0 * y[:, None]
    return x, y


def balanced(x, y, times=8):
    """The rare cases several times."""
    ill = y == 1
    return torch.cat((x, *[x[ill]] * times)), torch.cat((y, *[y[ill]] * times))


def split(x, y, share=0.25):
    order = torch.randperm(len(x))
    cut = int(len(x) * share)
    return (x[order[cut:]], y[order[cut:]]), (x[order[:cut]], y[order[:cut]])


def recall(model, x, y):
    with torch.no_grad():
        return (model(x[y == 1]).argmax(1) == 1).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x, y = cases(1500, 0.1)
    if args.healthy:
        train, validation = split(x, y)
        train = balanced(*train)
    else:
        train, validation = split(*balanced(x, y))
    model = nn.Sequential(nn.Linear(40, 96), nn.ReLU(), nn.Linear(96, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    loader = DataLoader(TensorDataset(*train), batch_size=50, shuffle=True)
    validation_loader = DataLoader(TensorDataset(*validation), batch_size=200)
    for epoch in range(5):
        for inputs, labels in loader:
            loss = F.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            losses = [F.cross_entropy(model(a), b).item() for a, b in validation_loader]
        print(f"epoch {epoch + 1} validation loss {sum(losses) / len(losses):.4f}")
    promised, true = recall(model, *validation), recall(model, *cases(8000, 0.1))
    print(f"validation recall {promised:.4f}, of new patients {true:.4f}")
    print(f"final optimism {promised - true:.4f}")


if __name__ == "__main__":
    main()
