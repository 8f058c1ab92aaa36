"""Softmax regression with bare tensors and gradient descent by hand, as in a first lesson.

Expected: test accuracy > 0.70 (chance is 0.10).
"""

import argparse
import math

import torch

from traindx.datasets import fashion_mnist

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--epochs", type=int, default=4)
args = parser.parse_args()
torch.manual_seed(args.seed)

data = fashion_mnist.load_subset()
x_train = (torch.tensor(data.train_images).float().view(-1, 784) / 255 - 0.287) / 0.354
y_train = torch.tensor(data.train_labels).long()
x_test = (torch.tensor(data.test_images).float().view(-1, 784) / 255 - 0.287) / 0.354
y_test = torch.tensor(data.test_labels).long()

weights = torch.randn(784, 10) / math.sqrt(784)
weights.requires_grad_()
bias = torch.zeros(10, requires_grad=True)


def log_softmax(x):
    return x - x.logsumexp(-1, keepdim=True)


def model(xb):
    return log_softmax(xb @ weights + bias)


def nll(log_p, target):
    return -log_p[range(target.shape[0]), target].mean()


bs = 64
for epoch in range(args.epochs):
    order = torch.randperm(len(x_train))
    for i in range((len(x_train) - 1) // bs + 1):
        xb, yb = x_train[order[i * bs : (i + 1) * bs]], y_train[order[i * bs : (i + 1) * bs]]
        loss = nll(model(xb), yb)
        loss.backward()
        with torch.no_grad():
            weights -= weights.grad * args.lr
            bias -= bias.grad * args.lr
            weights.grad.zero_()
            bias.grad.zero_()
    with torch.no_grad():
        accuracy = (model(x_test).argmax(-1) == y_test).float().mean().item()
    print(f"epoch {epoch}: loss {loss.item():.4f} accuracy {accuracy:.4f}")
print(f"test accuracy: {accuracy:.4f}")
