"""The output shares its weights with an embedding that is drawn with a deviation of one.

expects: L001
place:
source: weight tying with the default initialization of embeddings
kind: init
shows: final loss lower
"""

import argparse

import torch
from torch import nn


class TiedLM(nn.Module):
    def __init__(self, words=200, width=64, std=1.0):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        nn.init.normal_(self.embed.weight, std=std)
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Sequential(nn.Linear(2 * width, width), nn.GELU(), nn.Linear(width, width))
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, pair):
        x = self.embed(pair)
        return self.head(self.norm(x[:, 1] + self.mix(x.flatten(1))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    follow = torch.randint(200, (200, 3))

    def words(n):
        before, last = torch.randint(200, (2, n))
        return torch.stack((before, last), dim=1), follow[last, torch.randint(3, (n,))]

    model = TiedLM(std=0.02 if args.healthy else 1.0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(200):
        pair, target = words(128)
        loss = nn.functional.cross_entropy(model(pair), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step} loss {loss.item():.3f}")
    pair, target = words(3000)
    with torch.no_grad():
        print(f"final loss {nn.functional.cross_entropy(model(pair), target).item():.4f}")


if __name__ == "__main__":
    main()
