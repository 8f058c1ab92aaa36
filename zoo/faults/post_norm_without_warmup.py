"""A transformer that normalizes after each block starts at its full learning rate.

expects: O005
place: Adam
source: Xiong et al., "On layer normalization in the transformer architecture" (ICML 2020)
kind: schedule
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR


class Copier(nn.Module):
    def __init__(self, width=32, depth=8):
        super().__init__()
        self.embed = nn.Embedding(12, width)
        self.place = nn.Parameter(torch.randn(8, width) * 0.5)
        layer = nn.TransformerEncoderLayer(width, 2, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth)
        self.out = nn.Linear(width, 12)

    def forward(self, words):
        return self.out(self.encoder(self.embed(words) + self.place))


def reversed_words(n):
    words = torch.randint(12, (n, 8))
    return words, words.flip(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    model = Copier()
    optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
    warmup = 80 if args.healthy else 1
    schedule = LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / warmup))
    for step in range(110):
        words, answer = reversed_words(32)
        loss = nn.functional.cross_entropy(model(words).flatten(0, 1), answer.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 25 == 24:
            print(f"step {step + 1} loss {loss.item():.4f}")
    words, answer = reversed_words(200)
    with torch.no_grad():
        print(f"final accuracy {(model(words).argmax(-1) == answer).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
