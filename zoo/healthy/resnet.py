"""A small residual network on Fashion-MNIST, with a trainer class.

Expected: test accuracy > 0.70 (chance is 0.10).
"""

import argparse

import torch
from torch import nn, optim
from torch.nn import functional as F

from traindx.datasets import fashion_mnist


class BasicBlock(nn.Module):
    def __init__(self, in_planes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Identity()
        if stride != 1 or in_planes != planes:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_planes, planes, 1, stride=stride, bias=False),
                nn.BatchNorm2d(planes),
            )

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return self.relu(out + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self, widths=(8, 16, 32), num_classes=10):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, widths[0], 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(widths[0]),
            nn.ReLU(inplace=True),
        )
        self.layer1 = BasicBlock(widths[0], widths[0])
        self.layer2 = BasicBlock(widths[0], widths[1], stride=2)
        self.layer3 = BasicBlock(widths[1], widths[2], stride=2)
        self.head = nn.Linear(widths[2], num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(self.stem(x))))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Trainer:
    def __init__(self, model, train_data, test_data, epochs, batch_size=100, max_lr=0.1):
        self.model = model
        self.train_images, self.train_labels = train_data
        self.test_images, self.test_labels = test_data
        self.epochs = epochs
        self.batch_size = batch_size
        self.optimizer = optim.SGD(
            model.parameters(), lr=max_lr, momentum=0.9, weight_decay=5e-4, nesterov=True
        )
        steps = epochs * -(-len(self.train_labels) // batch_size)
        self.scheduler = optim.lr_scheduler.OneCycleLR(self.optimizer, max_lr, total_steps=steps)

    def fit(self):
        for epoch in range(self.epochs):
            loss = self.train_epoch()
            print(f"[{epoch + 1}/{self.epochs}] loss={loss:.4f} accuracy={self.evaluate():.4f}")

    def train_epoch(self):
        self.model.train()
        losses = []
        for batch in torch.randperm(len(self.train_labels)).split(self.batch_size):
            loss = F.cross_entropy(self.model(self.train_images[batch]), self.train_labels[batch])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        logits = torch.cat([self.model(images) for images in self.test_images.split(250)])
        return (logits.argmax(1) == self.test_labels).float().mean().item()


def to_tensors(images, labels):
    return (torch.tensor(images)[:, None].float() / 255 - 0.2869) / 0.3538, torch.tensor(
        labels
    ).long()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    opts = parser.parse_args()
    torch.manual_seed(opts.seed)
    mnist = fashion_mnist.load_subset()
    trainer = Trainer(
        ResNet(),
        to_tensors(mnist.train_images, mnist.train_labels),
        to_tensors(mnist.test_images, mnist.test_labels),
        opts.epochs,
    )
    trainer.fit()
    print("test accuracy =", round(trainer.evaluate(), 4))
