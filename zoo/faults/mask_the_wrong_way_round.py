"""The mask is true where words are, so attention looks at padding and at nothing else.

expects: F011
place: layer
source: two conventions of boolean masks
kind: architecture
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn


class Sentiment(nn.Module):
    def __init__(self, words=40, width=32):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True)
        self.query = nn.Parameter(torch.randn(1, 1, width) / 4)
        self.out = nn.Linear(width, 2)

    def forward(self, words, mask):
        first = self.query.expand(len(words), -1, -1)
        x = torch.cat((first, self.embed(words)), dim=1)
        x = self.layer(x, src_key_padding_mask=mask)
        return self.out(x[:, 0])


def reviews(n):
    """Up to nine words, then zeros; words below 20 are friendly."""
    length = torch.randint(3, 10, (n, 1))
    words = torch.randint(1, 40, (n, 10))
    real = torch.arange(10) < length
    friendly = torch.where(real, torch.where(words < 20, 1, -1), 0).sum(1) > 0
    return words * real, real, friendly.long()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    def mask_of(real):
        words = ~real if args.healthy else real
        return torch.cat((torch.zeros(len(real), 1, dtype=torch.bool), words), dim=1)

    model = Sentiment()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(150):
        words, real, label = reviews(64)
        loss = nn.functional.cross_entropy(model(words, mask_of(real)), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    words, real, label = reviews(1000)
    with torch.no_grad():
        right = model(words, mask_of(real)).argmax(1) == label
    print(f"final accuracy {right.float().mean().item():.4f}")


if __name__ == "__main__":
    main()
