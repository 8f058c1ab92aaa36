"""BatchNorm1d is given (batch, length, features) and normalizes every position, not every feature.

expects: N006
place: norm
source: BatchNorm1d on the output of nn.Linear of sequences, with num_features set to their length
kind: normalization
shows: final error lower
"""

import argparse

import torch
from torch import nn

LENGTH, FEATURES, WIDTH = 20, 6, 32


class SequenceModel(nn.Module):
    def __init__(self, by_feature):
        super().__init__()
        self.by_feature = by_feature
        self.lift = nn.Linear(FEATURES, WIDTH)
        self.norm = nn.BatchNorm1d(WIDTH if by_feature else LENGTH)
        self.mix = nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, 1)

    def normalize(self, x):
        if self.by_feature:
            return self.norm(x.transpose(1, 2)).transpose(1, 2)
        return self.norm(x)

    def forward(self, x):
        x = self.normalize(self.lift(x))
        return self.head(torch.relu(self.mix(torch.relu(x))).mean(1))[:, 0]


def readings(count):
    """Sensors of unlike size, that drift with time; only the small ones matter."""
    scale = torch.logspace(1.5, -1.5, FEATURES)
    drift = 20 * torch.linspace(-1, 1, LENGTH)[:, None] * (torch.arange(FEATURES) == 0)
    x = torch.randn(count, LENGTH, FEATURES) * scale + drift
    return x, 30 * (x[..., -2:] / scale[-2:]).mean((1, 2)).tanh()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x, y = readings(2500)
    model = SequenceModel(by_feature=args.healthy)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(250):
        batch = torch.randint(2000, (64,))
        loss = (model(x[batch]) - y[batch]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        print(f"final error {(model(x[2000:]) - y[2000:]).abs().mean().item():.4f}")


if __name__ == "__main__":
    main()
