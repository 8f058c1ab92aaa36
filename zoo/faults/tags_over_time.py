"""A sequence of eight words has eight possible tags, so the wrong order of axes raises no error.

expects: L003
place:
source: cross-entropy wants the classes second; silent only where two sizes agree
kind: loss-pairing
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

WORDS, TAGS, LENGTH = 40, 8, 8


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 32)
        self.rnn = nn.GRU(32, 32, batch_first=True, bidirectional=True)
        self.tag = nn.Linear(64, TAGS)

    def forward(self, words):
        states, _ = self.rnn(self.embed(words))
        return self.tag(states)


def sentences(n):
    """A word's tag depends on itself and on the word before."""
    words = torch.randint(WORDS, (n, LENGTH))
    before = words.roll(1, dims=1)
    before[:, 0] = 0
    return words, (words + 3 * (before % 2)) % TAGS


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    model = Tagger()
    axes = (0, 2, 1) if args.healthy else (0, 1, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(120):
        words, tags = sentences(32)
        loss = F.cross_entropy(model(words).permute(axes), tags)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 29:
            print(f"step {step + 1} loss {loss.item():.4f}")
    words, tags = sentences(500)
    with torch.no_grad():
        accuracy = (model(words).argmax(-1) == tags).float().mean().item()
    print(f"final accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
