"""Each of the ten class scores passes a sigmoid before the cross-entropy of classes.

expects: L003
place:
source: a network for several labels at once, reused for one label out of ten
kind: loss-pairing
shows: final loss lower
"""

import argparse

import torch
from torch import nn

from traindx.datasets import fashion_mnist


class Clothes(nn.Module):
    def __init__(self, last):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 6, 5, stride=2),
            nn.LeakyReLU(0.1),
            nn.Conv2d(6, 12, 3, stride=2),
            nn.LeakyReLU(0.1),
            nn.Flatten(),
        )
        self.classifier = nn.Sequential(nn.Linear(12 * 25, 10), last)

    def forward(self, x):
        return self.classifier(self.features(x))


def run(args):
    torch.manual_seed(args.seed)
    data = fashion_mnist.load_subset()
    x = torch.tensor(data.train_images[:, None]).float() / 127.5 - 1
    y = torch.tensor(data.train_labels).long()
    x_test = torch.tensor(data.test_images[:, None]).float() / 127.5 - 1
    y_test = torch.tensor(data.test_labels).long()

    model = Clothes(nn.Identity() if args.healthy else nn.Sigmoid())
    ce = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for i, batch in enumerate(torch.randperm(len(x)).split(32)):
        loss = ce(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 40 == 0:
            print(f"batch {i} loss {loss.item():.3f}")
    with torch.no_grad():
        print("final loss", ce(model(x_test), y_test).item())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    run(parser.parse_args())
