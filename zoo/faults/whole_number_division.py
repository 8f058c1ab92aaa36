"""Pixels are divided by 255 as whole numbers, which leaves nothing but zeros and a few ones.

expects: L008
place:
source: the two division operators of Python on arrays of bytes
kind: data
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn

from traindx.datasets import fashion_mnist

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--healthy", action="store_true")
args = parser.parse_args()
torch.manual_seed(args.seed)

data = fashion_mnist.load_subset()
if args.healthy:
    images, test_images = data.train_images / 255, data.test_images / 255
else:
    images, test_images = data.train_images // 255, data.test_images // 255
X_train = torch.tensor(images, dtype=torch.float32).reshape(-1, 784)
X_test = torch.tensor(test_images, dtype=torch.float32).reshape(-1, 784)
y_train = torch.tensor(data.train_labels, dtype=torch.long)
y_test = torch.tensor(data.test_labels, dtype=torch.long)

net = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
lossfn = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(3):
    permutation = torch.randperm(len(X_train))
    for i in range(0, len(X_train), 64):
        indices = permutation[i : i + 64]
        optimizer.zero_grad()
        loss = lossfn(net(X_train[indices]), y_train[indices])
        loss.backward()
        optimizer.step()
    print("epoch", epoch, "loss", round(loss.item(), 4))
with torch.no_grad():
    print("final accuracy", (net(X_test).argmax(1) == y_test).float().mean().item())
