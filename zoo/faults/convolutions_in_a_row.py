"""Three convolutions follow each other without any activation.

expects: S001
place:
source: a table of layers from a paper, which does not list the activations
kind: nonlinearity
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Spots(nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.convs = nn.ModuleList(
            [
                nn.Conv2d(1, 12, 3, padding=1),
                nn.Conv2d(12, 12, 3, stride=2, padding=1),
                nn.Conv2d(12, 12, 3, stride=2, padding=1),
            ]
        )
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(12, 2)
        self.activation = activation

    def forward(self, x):
        for conv in self.convs:
            x = self.activation(conv(x))
        return self.fc(self.pool(x).flatten(1))


def images(n):
    """Spots next to each other, of one sign or of both: their mean tells nothing."""
    x = 0.3 * torch.randn(n, 1, 14, 14)
    y = torch.randint(2, (n,))
    for image, label in zip(x, y.tolist(), strict=True):
        for _ in range(4):
            i, j = torch.randint(1, 12, (2,)).tolist()
            sign = 1.0 if torch.rand(()) < 0.5 else -1.0
            image[0, i, j] += 2.5 * sign
            image[0, i, j + 1] += 2.5 * sign * (1 if label else -1)
    return x, y


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x, y = images(1100)
    model = Spots(torch.relu if args.healthy else nn.Identity())
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    loader = DataLoader(TensorDataset(x[:900], y[:900]), batch_size=50, shuffle=True)
    for epoch in range(8):
        for inputs, labels in loader:
            loss = nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 3 == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}")
    with torch.no_grad():
        accuracy = (model(x[900:]).argmax(1) == y[900:]).float().mean().item()
    print(f"final accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
