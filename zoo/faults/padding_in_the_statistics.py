"""Most positions of a batch are padding, and BatchNorm counts their zeros as data.

expects: N021
place: norm
source: BatchNorm in code for sequences of unlike length, without a mask
kind: normalization
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

LONGEST, FEATURES = 60, 12


class MaskedBatchNorm(nn.BatchNorm1d):
    """Over the positions of a mask alone; the others stay 0."""

    def forward(self, x, mask):
        out = torch.zeros_like(x)
        out[mask] = super().forward(x[mask])
        return out


class PlainBatchNorm(nn.BatchNorm1d):
    def forward(self, x, mask):
        return super().forward(x.flatten(0, 1)).view_as(x) * mask[..., None]


class Net(nn.Module):
    def __init__(self, norm, width=32):
        super().__init__()
        self.norm = norm(FEATURES)
        self.lift = nn.Linear(FEATURES, width)
        self.head = nn.Linear(width, 3)

    def forward(self, x, mask):
        hidden = F.relu(self.lift(self.norm(x, mask))) * mask[..., None]
        return self.head(hidden.sum(1) / mask.sum(1, keepdim=True))


def batch(count, rule, longest):
    lengths = torch.randint(3, longest, (count,))
    mask = torch.arange(LONGEST) < lengths[:, None]
    meaning = torch.randn(count, 1, FEATURES)
    x = (20 + meaning + 0.5 * torch.randn(count, LONGEST, FEATURES)) * mask[..., None]
    return x, mask, (meaning[:, 0] @ rule).argmax(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    rule = torch.randn(FEATURES, 3)
    net = Net(MaskedBatchNorm if args.healthy else PlainBatchNorm)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for step in range(120):
        x, mask, y = batch(32, rule, longest=12)
        loss = F.cross_entropy(net(x, mask), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 39:
            print(f"step {step + 1} loss {loss.item():.4f}")
    net.eval()
    with torch.no_grad():
        x, mask, y = batch(1000, rule, longest=60)
        print(f"final accuracy {(net(x, mask).argmax(1) == y).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
