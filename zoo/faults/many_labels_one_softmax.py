"""A film has several genres at once, and the loss lets its genres compete for one probability.

expects: L003
place:
source: cross-entropy, which accepts a table of zeros and ones as well, in a problem of many labels
kind: loss-pairing
shows: final exact matches higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class Genres(nn.Module):
    def __init__(self, words=60, genres=6):
        super().__init__()
        self.bag = nn.EmbeddingBag(words, 24, mode="mean")
        self.hidden = nn.Linear(24, 48)
        self.out = nn.Linear(48, genres)

    def forward(self, words):
        return self.out(F.relu(self.hidden(self.bag(words))))


def films(n, genres=6, words=60):
    """Twenty words of a plot, drawn from the words of its genres."""
    of = torch.rand(n, genres) < 0.35
    weight = torch.full((n, words), 0.2)
    weight += 4 * of.float().repeat_interleave(words // genres, dim=1)
    return torch.multinomial(weight, 20, replacement=True), of.float()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    model = Genres()
    criterion = nn.BCEWithLogitsLoss() if args.healthy else nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(200):
        plot, genres = films(64)
        loss = criterion(model(plot), genres)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    plot, genres = films(1000)
    with torch.no_grad():
        exact = ((model(plot) > 0) == (genres > 0.5)).all(1).float().mean().item()
    print(f"final exact matches {exact:.4f}")


if __name__ == "__main__":
    main()
