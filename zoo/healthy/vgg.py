"""A VGG-like stack of convolutions on Fashion-MNIST, at half the resolution.

Expected: test accuracy > 0.74 (chance is 0.10).
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

from traindx.datasets import fashion_mnist

CFG = [1, "M", 2, 2, "M", 4, "M"]  # multiples of the width


def norm_layer(kind, channels):
    if kind == "batch":
        return nn.BatchNorm2d(channels)
    if kind == "group":
        return nn.GroupNorm(4, channels)
    return nn.Identity()


def make_layers(width, norm):
    layers, in_channels = [], 1
    for v in CFG:
        if v == "M":
            layers.append(nn.MaxPool2d(2))
            continue
        conv = nn.Conv2d(in_channels, v * width, 3, padding=1, bias=norm == "none")
        nn.init.kaiming_normal_(conv.weight, nonlinearity="relu")
        layers += [conv, norm_layer(norm, v * width), nn.ReLU(inplace=True)]
        in_channels = v * width
    return nn.Sequential(*layers)


class VGG(nn.Module):
    def __init__(self, width, norm):
        super().__init__()
        self.features = make_layers(width, norm)
        self.classifier = nn.Sequential(
            nn.Linear(4 * width, 8 * width),
            nn.ReLU(inplace=True),
            nn.Dropout(0.2),
            nn.Linear(8 * width, 10),
        )

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def load(images, labels):
    images = torch.from_numpy(images).float()[:, None] / 255
    return (F.avg_pool2d(images, 3, stride=3) - 0.29) / 0.33, torch.from_numpy(labels).long()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--norm", choices=["batch", "group", "none"], default="batch")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    x, y = load(data.train_images, data.train_labels)
    x_test, y_test = load(data.test_images, data.test_labels)
    model = VGG(args.width, args.norm)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)

    for epoch in range(args.epochs):
        model.train()
        for idx in torch.randperm(len(x)).split(100):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
        print(f"epoch {epoch}: loss {loss.item():.3f} accuracy {accuracy:.4f}")
    print(f"test accuracy: {accuracy:.4f}")


if __name__ == "__main__":
    main()
