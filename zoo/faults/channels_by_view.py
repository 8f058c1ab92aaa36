"""Time and channels are swapped by a view, which renames the axes and leaves the numbers in place.

expects: F013
place: conv1
source: view and transpose taken for two words of one thing
kind: architecture
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class Activity(nn.Module):
    """What somebody does, from nine sensors over time."""

    def __init__(self, swap):
        super().__init__()
        self.swap = swap
        self.conv1 = nn.Conv1d(9, 24, 5)
        self.conv2 = nn.Conv1d(24, 24, 3)
        self.fc = nn.Linear(24, 4)

    def forward(self, x):
        n, steps, sensors = x.shape
        x = x.transpose(1, 2) if self.swap else x.view(n, sensors, steps)
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        return self.fc(x.mean(-1))


def record(n, steps=32):
    """Some sensor is shaken for a while; which one tells the activity."""
    kind = torch.randint(4, (n,))
    start = torch.randint(0, steps - 8, (n, 1))
    t = torch.arange(steps)
    shaken = ((t >= start) & (t < start + 8)).float() * torch.sin(1.3 * t)
    x = 0.7 * torch.randn(n, steps, 9)
    x[torch.arange(n), :, 2 * kind] += 2 * shaken
    return x, kind


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x, y = record(1200)
    x_test, y_test = record(400)
    model = Activity(swap=args.healthy)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(6):
        for i in torch.randperm(1200).split(40):
            loss = F.cross_entropy(model(x[i]), y[i])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        print(f"final accuracy {(model(x_test).argmax(1) == y_test).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
