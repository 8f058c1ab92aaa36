"""The softmax of attention is taken over the queries, so no query's weights sum to one.

expects: F012
place: attend
source: a softmax axis counted from the wrong end
kind: architecture
shows: final mse lower
"""

import argparse

import torch
from torch import nn


class Attend(nn.Module):
    def __init__(self, width, axis):
        super().__init__()
        self.q = nn.Linear(width, width)
        self.k = nn.Linear(width, width)
        self.axis = axis

    def forward(self, query, keys, values):
        score = torch.einsum("bqd,bkd->bqk", self.q(query), self.k(keys)) / 4
        return torch.einsum("bqk,bkd->bqd", score.softmax(self.axis), values)


class LookUp(nn.Module):
    """Finds the value that stands beside the key most like the query."""

    def __init__(self, axis):
        super().__init__()
        self.attend = Attend(16, axis)
        self.read = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, query, keys, values):
        return self.read(self.attend(query, keys, values))


def tables(n, rows=6):
    keys = nn.functional.normalize(torch.randn(n, rows, 16), dim=2) * 4
    values = torch.randn(n, rows, 2)
    asked = torch.randint(rows, (n, 3))
    pick = torch.arange(n)[:, None]
    return keys[pick, asked] + 0.1 * torch.randn(n, 3, 16), keys, values, values[pick, asked]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    model = LookUp(axis=-1 if args.healthy else 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    mse = nn.MSELoss()
    for step in range(250):
        *inputs, answer = tables(64)
        loss = mse(model(*inputs), answer)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    *inputs, answer = tables(1000)
    with torch.no_grad():
        print(f"final mse {mse(model(*inputs), answer).item():.4f}")


if __name__ == "__main__":
    main()
