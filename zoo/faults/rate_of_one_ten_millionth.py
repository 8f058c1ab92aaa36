"""The learning rate is 1e-7, at which a thousandth of the way is made.

expects: O002
place: Adam
source: a learning rate far too low, injected by most fault collections
kind: schedule
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
args = parser.parse_args()
torch.manual_seed(args.seed)
LR = 1e-3 if args.healthy else 1e-7

data = fashion_mnist.load_subset()
images = torch.from_numpy(data.train_images).unsqueeze(1).float().sub(73.2).div(90.2)
test_images = torch.from_numpy(data.test_images).unsqueeze(1).float().sub(73.2).div(90.2)
train_set = TensorDataset(images, torch.from_numpy(data.train_labels).long())
model = nn.Sequential(
    nn.Conv2d(1, 8, 5, stride=2),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(8 * 144, 32),
    nn.ReLU(),
    nn.Linear(32, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=LR)
for epoch in range(2):
    for step, (x, y) in enumerate(DataLoader(train_set, batch_size=64, shuffle=True)):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(f"epoch {epoch + 1} step {step} loss {loss.item():.4f}")
with torch.no_grad():
    right = model(test_images).argmax(1) == torch.from_numpy(data.test_labels)
print(f"final accuracy {right.float().mean().item():.4f}")
