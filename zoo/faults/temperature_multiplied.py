"""Similarities are multiplied by the temperature of 0.07 instead of divided by it.

expects: L020
place:
source: contrastive losses written from memory
kind: loop
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class Encoder(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 16))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


class InfoNCE(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, a, b):
        scores = a @ b.T * self.scale
        target = torch.arange(len(a))
        return (F.cross_entropy(scores, target) + F.cross_entropy(scores.T, target)) / 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    sight, sound = torch.randn(8, 20), torch.randn(8, 30)

    def events(n):
        """What is seen and what is heard of the same events."""
        event = torch.randn(n, 8)
        return (
            torch.tanh(event @ sight) + 0.4 * torch.randn(n, 20),
            torch.tanh(event @ sound) + 0.4 * torch.randn(n, 30),
        )

    see, hear = Encoder(20), Encoder(30)
    temperature = 0.07
    criterion = InfoNCE(1 / temperature if args.healthy else temperature)
    optimizer = torch.optim.AdamW([*see.parameters(), *hear.parameters()], lr=2e-3)
    for step in range(200):
        a, b = events(64)
        loss = criterion(see(a), hear(b))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    a, b = events(256)
    with torch.no_grad():
        found = (see(a) @ hear(b).T).argmax(1)
    print(f"final accuracy {(found == torch.arange(256)).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
