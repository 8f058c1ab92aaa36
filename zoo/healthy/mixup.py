"""Mixup and random erasing, with soft targets.

Expected: test accuracy > 0.72 (chance is 0.10).
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

from traindx.datasets import fashion_mnist

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--alpha", type=float, default=0.3)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--width", type=int, default=8)
args = parser.parse_args()
torch.manual_seed(args.seed)


def mixup(x, y):
    beta = torch.distributions.Beta(args.alpha, args.alpha)
    lam = beta.sample((len(x),))
    order = torch.randperm(len(x))
    lam_x = lam.view(-1, 1, 1, 1)
    return lam_x * x + (1 - lam_x) * x[order], lam[:, None] * y + (1 - lam[:, None]) * y[order]


def erase(x, size=4):
    x = x.clone()
    row, column = torch.randint(0, x.shape[-1] - size, (2,)).tolist()
    some = torch.rand(len(x)) < 0.3
    x[some, :, row : row + size, column : column + size] = 0
    return x


data = fashion_mnist.load_subset()
train_x = F.avg_pool2d((torch.tensor(data.train_images)[:, None].float() - 73) / 80, 2)
test_x = F.avg_pool2d((torch.tensor(data.test_images)[:, None].float() - 73) / 80, 2)
train_y = F.one_hot(torch.tensor(data.train_labels).long(), 10).float()
test_y = torch.tensor(data.test_labels).long()

model = nn.Sequential(
    nn.Conv2d(1, args.width, 5, padding=2),
    nn.BatchNorm2d(args.width),
    nn.LeakyReLU(0.1),
    nn.MaxPool2d(2),
    nn.Conv2d(args.width, 2 * args.width, 3, padding=1),
    nn.BatchNorm2d(2 * args.width),
    nn.LeakyReLU(0.1),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(18 * args.width, 10),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-3)
for epoch in range(args.epochs):
    model.train()
    for idx in torch.randperm(len(train_x)).split(100):
        inputs, targets = mixup(erase(train_x[idx]), train_y[idx])
        loss = -(targets * model(inputs).log_softmax(1)).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(test_x).argmax(1) == test_y).float().mean().item()
    print(f"epoch {epoch}: loss {loss.item():.4f}, accuracy {accuracy:.4f}")
print(f"test accuracy: {accuracy:.4f}")
