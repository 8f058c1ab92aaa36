"""Features pass a function of NumPy on their way to the head, and the graph ends there.

expects: G003
place: features
source: a helper that exists for arrays only, called in a forward pass
kind: gradient
shows: final accuracy higher
"""

import argparse

import numpy as np
import torch
from torch import nn

from traindx.datasets import fashion_mnist


def unit_length_numpy(x):
    array = x.detach().numpy()
    return torch.from_numpy(array / np.linalg.norm(array, axis=1, keepdims=True))


def unit_length(x):
    return x / x.norm(dim=1, keepdim=True)


class CosineNet(nn.Module):
    def __init__(self, normalize):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 6, 5, stride=3), nn.Tanh(), nn.Flatten(), nn.Linear(384, 12)
        )
        self.head = nn.Linear(12, 10)
        self.normalize = normalize

    def forward(self, x):
        return 8 * self.head(self.normalize(self.features(x)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    images = torch.from_numpy(data.train_images)[:, None].float().sub(73.2).div(90.2)
    labels = torch.from_numpy(data.train_labels).long()
    model = CosineNet(unit_length if args.healthy else unit_length_numpy)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(120):
        i = torch.randint(len(images), (64,))
        loss = nn.functional.cross_entropy(model(images[i]), labels[i])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 39:
            print(f"step {step + 1} loss {loss.item():.4f}")
    test = torch.from_numpy(data.test_images)[:, None].float().sub(73.2).div(90.2)
    with torch.no_grad():
        right = model(test).argmax(1) == torch.from_numpy(data.test_labels)
    print(f"final accuracy {right.float().mean().item():.4f}")


if __name__ == "__main__":
    main()
