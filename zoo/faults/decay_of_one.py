"""Weight decay is 1, and pulls every weight to zero faster than the loss can hold it.

expects: O016
place: SGD
source: a decay rate of another optimizer, whose decay means something else
kind: optimizer
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--healthy", action="store_true")
parser.add_argument("--lr", type=float, default=0.03)
args = parser.parse_args()
torch.manual_seed(args.seed)

data = fashion_mnist.load_subset()
x = torch.from_numpy(data.train_images).float().flatten(1).sub(73.2).div(90.2)
y = torch.from_numpy(data.train_labels).long()
x_test = torch.from_numpy(data.test_images).float().flatten(1).sub(73.2).div(90.2)
y_test = torch.from_numpy(data.test_labels).long()
net = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
decay = 1e-4 if args.healthy else 1.0
optimizer = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9, weight_decay=decay)
criterion = nn.CrossEntropyLoss()
for epoch in range(2):
    for inputs, labels in DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True):
        loss = criterion(net(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch + 1} loss {loss.item():.4f}")
with torch.no_grad():
    print(f"final accuracy {(net(x_test).argmax(1) == y_test).float().mean().item():.4f}")
