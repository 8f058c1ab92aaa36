"""A multilayer perceptron on Fashion-MNIST, written from top to bottom.

Expected: test accuracy > 0.78 (chance is 0.10).
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()

torch.manual_seed(args.seed)

data = fashion_mnist.load_subset()
x_train = torch.tensor(data.train_images).float().flatten(1) / 255
x_test = torch.tensor(data.test_images).float().flatten(1) / 255
mean, std = x_train.mean(), x_train.std()
train_set = TensorDataset((x_train - mean) / std, torch.tensor(data.train_labels).long())
test_set = TensorDataset((x_test - mean) / std, torch.tensor(data.test_labels).long())
train_loader = DataLoader(train_set, batch_size=128, shuffle=True)
test_loader = DataLoader(test_set, batch_size=500)

model = nn.Sequential(
    nn.Linear(784, 256),
    nn.ReLU(),
    nn.Linear(256, 100),
    nn.ReLU(),
    nn.Linear(100, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

for epoch in range(args.epochs):
    model.train()
    for images, labels in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()

    model.eval()
    correct = 0
    with torch.no_grad():
        for images, labels in test_loader:
            correct += (model(images).argmax(dim=1) == labels).sum().item()
    accuracy = correct / len(test_set)
    print(f"epoch {epoch + 1} last loss {loss.item():.4f} validation accuracy {accuracy:.4f}")

print(f"test accuracy {accuracy:.4f}")
