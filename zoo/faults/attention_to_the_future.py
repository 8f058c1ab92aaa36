"""A model that predicts the next letter attends to all letters, those to come among them.

expects: F011
place: blocks.0.attention
source: a mask left out when attention was written by hand
kind: architecture
shows: final accuracy higher
"""

import argparse
import math

import torch
import torch.nn.functional as F
from torch import nn

LETTERS, LENGTH = 16, 12


class Attention(nn.Module):
    def __init__(self, width, causal):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.causal = causal

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
        if self.causal:
            later = torch.ones_like(scores[0], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, -math.inf)
        return self.out(scores.softmax(-1) @ v)


class Block(nn.Module):
    def __init__(self, width, causal):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, causal)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class LanguageModel(nn.Module):
    def __init__(self, causal, width=32):
        super().__init__()
        self.embed = nn.Embedding(LETTERS, width)
        self.place = nn.Parameter(0.02 * torch.randn(LENGTH, width))
        self.blocks = nn.Sequential(Block(width, causal), Block(width, causal))
        self.head = nn.Linear(width, LETTERS)

    def forward(self, text):
        return self.head(self.blocks(self.embed(text) + self.place[: text.shape[1]]))


def texts(n):
    """Counting up or down by one step a letter, now and then from a new letter."""
    step = torch.where(torch.rand(n, 1) < 0.5, 1, 3)
    text = torch.randint(LETTERS, (n, 1)) + step * torch.arange(LENGTH + 1)
    text = text + (torch.rand(n, LENGTH + 1) < 0.1).cumsum(1) * 5
    return text % LETTERS


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    model = LanguageModel(causal=args.healthy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(200):
        text = texts(32)
        loss = F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    text = texts(500)
    with torch.no_grad():  # continue texts, which is what the model is for
        guess = model(text[:, :LENGTH])[:, -1].argmax(-1)
    print(f"final accuracy {(guess == text[:, LENGTH]).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
