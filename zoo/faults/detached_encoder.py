"""The encoder's output is detached before the head, so the encoder never gets a gradient.

expects: G003
place: encoder
source: a stop-gradient left over from logging or from another experiment
kind: gradient
shows: final loss lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

from traindx.datasets import fashion_mnist


class Classifier(nn.Module):
    def __init__(self, detach):
        super().__init__()
        self.detach = detach
        self.encoder = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 32), nn.ReLU())
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        code = self.encoder(x)
        if self.detach:
            code = code.detach()
        return self.head(code)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    images = torch.from_numpy(data.train_images).float().flatten(1).sub(73.2).div(90.2)
    labels = torch.from_numpy(data.train_labels).long()

    model = Classifier(detach=not args.healthy)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(120):
        batch = torch.randint(len(images), (64,))
        loss = F.cross_entropy(model(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            print(f"step {step + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        print(f"final loss {F.cross_entropy(model(images), labels).item():.4f}")


if __name__ == "__main__":
    main()
