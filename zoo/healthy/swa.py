"""Stochastic weight averaging, with the BatchNorm statistics computed anew for the average.

Expected: swa accuracy > 0.76 (chance is 0.10).
"""

import argparse

import torch
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--swa-start", type=int, default=3)
parser.add_argument("--width", type=int, default=8)
args = parser.parse_args()
torch.manual_seed(args.seed)

data = fashion_mnist.load_subset()
x = nn.functional.avg_pool2d((torch.tensor(data.train_images)[:, None].float() - 73) / 80, 2)
x_test = nn.functional.avg_pool2d((torch.tensor(data.test_images)[:, None].float() - 73) / 80, 2)
y = torch.tensor(data.train_labels).long()
y_test = torch.tensor(data.test_labels).long()
loader = DataLoader(TensorDataset(x, y), batch_size=120, shuffle=True)

w = args.width
model = nn.Sequential(
    nn.Conv2d(1, w, 3, stride=2, padding=1, bias=False),
    nn.BatchNorm2d(w),
    nn.ReLU(),
    nn.Conv2d(w, 2 * w, 3, padding=1, bias=False),
    nn.BatchNorm2d(2 * w),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(3),
    nn.Flatten(),
    nn.Linear(18 * w, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)
swa_model = AveragedModel(model)
swa_scheduler = SWALR(optimizer, swa_lr=0.03, anneal_epochs=1)

for epoch in range(args.epochs):
    model.train()
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    if epoch >= args.swa_start:
        swa_model.update_parameters(model)
        swa_scheduler.step()
    else:
        scheduler.step()
    print(f"epoch {epoch} lr {optimizer.param_groups[0]['lr']:.3f} loss {loss.item():.4f}")

update_bn(loader, swa_model)
swa_model.eval()
model.eval()
with torch.no_grad():
    print(f"last weights: {(model(x_test).argmax(1) == y_test).float().mean().item():.4f}")
    accuracy = (swa_model(x_test).argmax(1) == y_test).float().mean().item()
print(f"swa accuracy: {accuracy:.4f}")
