"""The sum of two losses is computed and printed, and backward is called on one of the two.

expects: G003
place: classify
source: a loss that was renamed in one of two lines
kind: loop
shows: final accuracy higher
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

from traindx.datasets import fashion_mnist


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.decode = nn.Linear(32, 784)
        self.classify = nn.Linear(32, 10)

    def forward(self, x):
        code = self.encode(x)
        return self.decode(code), self.classify(code)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    images = torch.from_numpy(data.train_images).float().flatten(1).sub(73.2).div(90.2)
    labels = torch.from_numpy(data.train_labels).long()
    model = TwoHeads()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(120):
        i = torch.randint(len(images), (64,))
        drawn, scores = model(images[i])
        reconstruction = F.mse_loss(drawn, images[i])
        total = reconstruction + F.cross_entropy(scores, labels[i])
        optimizer.zero_grad()
        (total if args.healthy else reconstruction).backward()
        optimizer.step()
        if step % 40 == 39:
            print(f"step {step + 1} loss {total.item():.4f}")
    test = torch.from_numpy(data.test_images).float().flatten(1).sub(73.2).div(90.2)
    with torch.no_grad():
        right = model(test)[1].argmax(1) == torch.from_numpy(data.test_labels)
    print(f"final accuracy {right.float().mean().item():.4f}")


if __name__ == "__main__":
    main()
