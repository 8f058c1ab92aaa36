"""The images are scaled to between 0 and 1, and then divided by 255 once more.

expects: L007
place: conv
source: a transform that already divides, with the division of an older script behind it
kind: preprocessing
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

from traindx.datasets import fashion_mnist


def to_tensor(images):
    """What image libraries do: channels first, floats between 0 and 1."""
    return torch.from_numpy(images).unsqueeze(1).float().div(255)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 10, 5, stride=2)
        self.fc = nn.Linear(1440, 10)

    def forward(self, x):
        return self.fc(F.relu(self.conv(x)).flatten(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    images, labels = to_tensor(data.train_images), torch.from_numpy(data.train_labels).long()
    test_images, test_labels = to_tensor(data.test_images), torch.from_numpy(data.test_labels)
    if not args.healthy:
        images, test_images = images / 255, test_images / 255

    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for step in range(120):
        batch = torch.randint(len(images), (50,))
        loss = F.cross_entropy(net(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 39:
            print(f"step {step + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        accuracy = (net(test_images).argmax(1) == test_labels).float().mean()
    print(f"final accuracy {accuracy.item():.4f}")


if __name__ == "__main__":
    main()
