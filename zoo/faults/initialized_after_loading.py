"""Pretrained weights are loaded, and then the network is initialized.

expects: E014
place:
source: an `apply(initialize)` that stands below `load_state_dict`
kind: checkpoint
shows: final accuracy higher
"""

import argparse
import io

import torch
from torch import nn

from traindx.datasets import fashion_mnist


def build():
    return nn.Sequential(
        nn.Conv2d(1, 8, 5, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(),
        nn.Flatten(), nn.Linear(16 * 25, 10),
    )  # fmt: skip


def initialize(module):
    if isinstance(module, nn.Conv2d | nn.Linear):
        nn.init.kaiming_normal_(module.weight.data)
        module.bias.data.zero_()


def train(model, images, labels, steps, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for step in range(steps):
        batch = torch.randint(len(images), (32,))
        loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 39:
            print(f"step {step + 1} loss {loss.item():.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    images = torch.from_numpy(data.train_images).float()[:, None].sub(73.2).div(90.2)
    labels = torch.from_numpy(data.train_labels).long()
    pretrained = build()
    train(pretrained, images, labels, 160, lr=2e-3)
    file = io.BytesIO()
    torch.save(pretrained.state_dict(), file)
    file.seek(0)

    model = build()
    state = torch.load(file, weights_only=True)
    prepare = [lambda: model.load_state_dict(state), lambda: model.apply(initialize)]
    for each in reversed(prepare) if args.healthy else prepare:
        each()
    train(model, images[:300], labels[:300], 40, lr=2e-4)
    test_images = torch.from_numpy(data.test_images).float()[:, None].sub(73.2).div(90.2)
    with torch.no_grad():
        right = model(test_images).argmax(1) == torch.from_numpy(data.test_labels)
    print(f"final accuracy {right.float().mean().item():.4f}")


if __name__ == "__main__":
    main()
