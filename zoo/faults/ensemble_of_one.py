"""All members of an ensemble are copies of the first, so that they learn the same.

expects: S014
place: members.1.0
source: an ensemble made with copy.deepcopy; Lakshminarayanan et al. (2017), section 2.4
kind: init
shows: final loss lower
"""

import argparse
import copy

import torch
from torch import nn


def member():
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))


class Ensemble(nn.Module):
    def __init__(self, size, apart):
        super().__init__()
        first = member()
        others = [member() if apart else copy.deepcopy(first) for _ in range(size - 1)]
        self.members = nn.ModuleList([first, *others])

    def forward(self, x):
        return torch.stack([each(x) for each in self.members]).mean(0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    points = torch.rand(2000, 2) * 4 - 2
    labels = (points[:, 0] * points[:, 1] > 0).long()
    model = Ensemble(8, apart=args.healthy)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    for step in range(400):
        batch = torch.randint(2000, (128,))
        loss = nn.functional.cross_entropy(model(points[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 99:
            print(f"step {step + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        print(f"final loss {nn.functional.cross_entropy(model(points), labels).item():.4f}")


if __name__ == "__main__":
    main()
