"""The best weights are kept by reference, so they are always those of the last step.

expects: E006
place:
source: state_dict(), which returns the living tensors and no copy
kind: checkpoint
shows: final loss lower
"""

import argparse
import copy

import torch
from torch import nn


def data(n, signal):
    """Few samples of many noisy columns: a network soon knows them by heart."""
    x = torch.randn(n, 60)
    return x, (x @ signal + 0.8 * torch.randn(n) > 0).float()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    signal = torch.randn(60) / 8
    x, y = data(300, signal)
    x_val, y_val = data(1000, signal)
    model = nn.Sequential(nn.Linear(60, 128), nn.ReLU(), nn.Linear(128, 1), nn.Flatten(0))
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    keep = copy.deepcopy if args.healthy else lambda state: state
    best_loss, best_state = float("inf"), None
    for epoch in range(30):
        for rows in torch.randperm(300).split(30):
            loss = criterion(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            validation = criterion(model(x_val), y_val).item()
        if validation < best_loss:
            best_loss, best_state = validation, keep(model.state_dict())
            print(f"epoch {epoch + 1} best so far {best_loss:.4f}")
    model.load_state_dict(best_state)
    with torch.no_grad():
        print(f"final loss {criterion(model(x_val), y_val).item():.4f}")


if __name__ == "__main__":
    main()
