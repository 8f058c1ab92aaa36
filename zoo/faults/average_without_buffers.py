"""The moving average of the weights is tested with the BatchNorm statistics of its first day.

expects: E006
place:
source: an average over parameters() of code that was written before BatchNorm came in
kind: checkpoint
shows: final accuracy higher
"""

import argparse
import copy

import torch
from torch import nn
from torch.nn import functional as F

from traindx.datasets import fashion_mnist


class Average:
    """An exponential moving average of a model, itself a model."""

    def __init__(self, model, decay, with_buffers):
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay = decay
        self.with_buffers = with_buffers

    @torch.no_grad()
    def update(self, model):
        for mine, theirs in zip(self.model.parameters(), model.parameters(), strict=True):
            mine.lerp_(theirs, 1 - self.decay)
        if self.with_buffers:
            for mine, theirs in zip(self.model.buffers(), model.buffers(), strict=True):
                mine.copy_(theirs)


@torch.no_grad()
def accuracy(model, images, labels):
    return (model(images).argmax(1) == labels).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    images = torch.from_numpy(data.train_images).float()[:, None].sub(73.2).div(90.2)
    labels = torch.from_numpy(data.train_labels).long()
    test_images = torch.from_numpy(data.test_images).float()[:, None].sub(73.2).div(90.2)
    test_labels = torch.from_numpy(data.test_labels).long()

    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Flatten(), nn.Linear(16 * 49, 10),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    average = Average(model, decay=0.95, with_buffers=args.healthy)
    for epoch in range(2):
        for batch in torch.randperm(len(images)).split(64):
            loss = F.cross_entropy(model(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update(model)
        tested = accuracy(average.model, test_images, test_labels)
        print(f"epoch {epoch + 1} loss {loss.item():.4f} average {tested:.4f}")
    print(f"final accuracy {tested:.4f}")


if __name__ == "__main__":
    main()
