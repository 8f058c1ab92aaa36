"""The scores of the classes pass a ReLU before cross-entropy, which can then push none below zero.

expects: L003
place:
source: an activation after every layer, the last one included
kind: loss-pairing
shows: final loss lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

from traindx.datasets import fashion_mnist


def images_of(pixels):
    return torch.from_numpy(pixels).float().unsqueeze(1).sub(73.2).div(90.2)


class SmallConv(nn.Module):
    def __init__(self, relu_at_the_end):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 5, stride=3)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2)
        self.fc = nn.Linear(16 * 3 * 3, 10)
        self.relu_at_the_end = relu_at_the_end

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = self.fc(x.flatten(1))
        if self.relu_at_the_end:
            x = F.relu(x)
        return x


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    images, labels = images_of(data.train_images), torch.from_numpy(data.train_labels).long()
    test_images, test_labels = (
        images_of(data.test_images),
        torch.from_numpy(data.test_labels).long(),
    )

    model = SmallConv(relu_at_the_end=not args.healthy)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(150):
        idx = torch.randint(len(images), (64,))
        loss = F.cross_entropy(model(images[idx]), labels[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        print(f"final loss {F.cross_entropy(model(test_images), test_labels).item():.4f}")


if __name__ == "__main__":
    main()
