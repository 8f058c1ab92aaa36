"""The weights of all normalizations start at zero, as only those that end a residual branch may.

expects: N011
place: 1
source: the zero-init of Goyal et al. (2017), applied to every BatchNorm of a plain network
kind: init
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

from traindx.datasets import fashion_mnist


def conv(inputs, outputs, stride=2):
    return (
        nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    images = torch.from_numpy(data.train_images).float()[:, None].sub(73.2).div(90.2)
    labels = torch.from_numpy(data.train_labels).long()
    net = nn.Sequential(
        *conv(1, 8), *conv(8, 16), *conv(16, 16), nn.Flatten(), nn.Linear(16 * 4 * 4, 10)
    )
    for module in net:
        if isinstance(module, nn.BatchNorm2d):
            nn.init.constant_(module.weight, 1.0 if args.healthy else 0.0)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    recent = []
    for step in range(120):
        batch = torch.randint(len(images), (64,))
        scores = net(images[batch])
        loss = F.cross_entropy(scores, labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        recent = [*recent[-19:], (scores.argmax(1) == labels[batch]).float().mean().item()]
        if step % 30 == 29:
            print(f"step {step + 1} loss {loss.item():.4f} accuracy {sum(recent) / 20:.4f}")
    print(f"final accuracy {sum(recent) / len(recent):.4f}")


if __name__ == "__main__":
    main()
