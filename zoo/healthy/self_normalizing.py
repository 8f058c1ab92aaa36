"""Ten layers without any normalization: SELU, LeCun's initialization and alpha dropout.

Expected: test accuracy > 0.74 (chance is 0.10).
"""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from traindx.datasets import fashion_mnist

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--depth", type=int, default=10)
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()
torch.manual_seed(args.seed)

data = fashion_mnist.load_subset()
X = torch.from_numpy(data.train_images).float().flatten(1)
X_test = torch.from_numpy(data.test_images).float().flatten(1)
mean, std = X.mean(), X.std()
X, X_test = (X - mean) / std, (X_test - mean) / std
Y = torch.from_numpy(data.train_labels).long()
Y_test = torch.from_numpy(data.test_labels).long()

layers = []
size = 784
for _ in range(args.depth):
    layers += [nn.Linear(size, args.width), nn.SELU(), nn.AlphaDropout(0.02)]
    size = args.width
layers.append(nn.Linear(size, 10))
model = nn.Sequential(*layers)
for module in model:
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=math.sqrt(1 / module.in_features))
        nn.init.zeros_(module.bias)

optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for epoch in range(args.epochs):
    model.train()
    for batch in torch.randperm(len(X)).split(100):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(X[batch]), Y[batch])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(X_test).argmax(1) == Y_test).float().mean().item()
    print(f"epoch {epoch}: loss {loss.item():.4f}, accuracy {accuracy:.4f}")
print(f"test accuracy: {accuracy:.4f}")
