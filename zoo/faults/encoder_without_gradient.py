"""The encoder is called under no_grad, left from a time when it was pretrained.

expects: G003
place: encoder
source: torch.no_grad() around a part of the forward pass that is to be trained
kind: gradient
shows: final accuracy higher
"""

import argparse
import contextlib

import torch
from torch import nn


class Matcher(nn.Module):
    """Whether two sequences are the same up to noise."""

    def __init__(self, encode):
        super().__init__()
        self.encoder = nn.GRU(4, 24, batch_first=True)
        self.compare = nn.Sequential(nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 1))
        self.encode = encode

    def forward(self, left, right):
        with self.encode():
            a = self.encoder(left)[1][0]
            b = self.encoder(right)[1][0]
        return self.compare(torch.cat((a * b, (a - b).abs()), dim=1)).squeeze(1)


def pairs(n):
    left = torch.randn(n, 6, 4)
    same = torch.rand(n) < 0.5
    other = torch.where(same[:, None, None], left, left.flip(1))
    return left, other + 0.3 * torch.randn(n, 6, 4), same.float()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    model = Matcher(contextlib.nullcontext if args.healthy else torch.no_grad)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(150):
        left, right, same = pairs(64)
        loss = nn.functional.binary_cross_entropy_with_logits(model(left, right), same)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    left, right, same = pairs(2000)
    with torch.no_grad():
        accuracy = ((model(left, right) > 0) == (same > 0.5)).float().mean().item()
    print(f"final accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
