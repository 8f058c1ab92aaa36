"""A small transformer is left in eval mode by its first test, and trains on without dropout.

expects: E002
place:
source: an evaluate() that calls eval() and relies on its caller for train()
kind: mode
shows: provable: the dropout of 0.3 that the model is built with never acts after step 40
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

LENGTH, SYMBOLS = 12, 16


class Tagger(nn.Module):
    """Says of a sequence which symbol it holds most often."""

    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS, dim)
        self.place = nn.Parameter(0.02 * torch.randn(LENGTH, dim))
        layer = nn.TransformerEncoderLayer(
            dim, nhead=4, dim_feedforward=64, dropout=0.3, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 1, nn.LayerNorm(dim), False)
        self.head = nn.Linear(dim, SYMBOLS)

    def forward(self, symbols):
        return self.head(self.encoder(self.embed(symbols) + self.place).mean(1))


def sample(count):
    symbols = torch.randint(SYMBOLS, (count, LENGTH))
    return symbols, F.one_hot(symbols, SYMBOLS).sum(1).argmax(1)


def evaluate(model, symbols, target):
    model.eval()
    with torch.no_grad():
        return (model(symbols).argmax(1) == target).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    symbols, target = sample(1500)
    tests = sample(500)
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(160):
        batch = torch.randint(len(symbols), (50,))
        loss = F.cross_entropy(model(symbols[batch]), target[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 39:
            accuracy = evaluate(model, *tests)
            print(f"step {step + 1} loss {loss.item():.4f} accuracy {accuracy:.3f}")
            model.train(args.healthy)


if __name__ == "__main__":
    main()
