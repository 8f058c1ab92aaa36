"""A recipe for fine-tuning keeps BatchNorm in eval mode, but this network is trained from scratch.

expects: N004
place: stem.1
source: a freeze_bn() of detection code, used without the pretrained weights it is meant for
kind: mode
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

from traindx.datasets import fashion_mnist


class Detector(nn.Module):
    def __init__(self, freeze_bn):
        super().__init__()
        self.freeze_bn = freeze_bn
        self.stem = nn.Sequential(
            nn.Conv2d(1, 8, 5, stride=3, bias=False), nn.BatchNorm2d(8), nn.ReLU()
        )
        self.trunk = nn.Sequential(
            *(
                part
                for _ in range(4)
                for part in (
                    nn.Conv2d(8, 8, 3, padding=1, bias=False),
                    nn.BatchNorm2d(8),
                    nn.ReLU(),
                )
            )
        )
        self.head = nn.Linear(8 * 8 * 8, 10)

    def train(self, mode=True):
        super().train(mode)
        if self.freeze_bn:
            for module in self.modules():
                if isinstance(module, nn.BatchNorm2d):
                    module.eval()
        return self

    def forward(self, images):
        return self.head(self.trunk(self.stem(images)).flatten(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    images = torch.from_numpy(data.train_images).float()[:, None].sub(73.2).div(90.2)
    labels = torch.from_numpy(data.train_labels).long()
    net = Detector(freeze_bn=not args.healthy)
    net.train()
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
    print(f"final accuracy {sum(recent) / 20:.4f}")


if __name__ == "__main__":
    main()
