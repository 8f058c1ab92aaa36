"""The negative log-likelihood takes raw scores for logarithms, and falls below any bound.

expects: L003
place:
source: NLLLoss and CrossEntropyLoss taken for the same
kind: loss-pairing
shows: final log loss lower
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--healthy", action="store_true")
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()
torch.manual_seed(args.seed)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 12, 3)
        self.drop = nn.Dropout(0.1)
        self.fc1 = nn.Linear(12 * 36, 48)
        self.fc2 = nn.Linear(48, 10)

    def forward(self, x):
        x = F.relu(self.conv(x)).flatten(1)
        x = self.drop(F.relu(self.fc1(x)))
        return self.fc2(x)


digits = load_digits()
x = torch.from_numpy(digits.images).float().unsqueeze(1) / 16
x = (x - 0.305) / 0.376
y = torch.from_numpy(digits.target).long()
mixed = torch.randperm(len(y))
train_loader = DataLoader(
    TensorDataset(x[mixed[:1500]], y[mixed[:1500]]), batch_size=32, shuffle=True
)
x_test, y_test = x[mixed[1500:]], y[mixed[1500:]]

model = Net()
criterion = nn.CrossEntropyLoss() if args.healthy else nn.NLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(args.epochs):
    model.train()
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch + 1}, loss {loss.item():.3f}")

model.eval()
with torch.no_grad():
    log_loss = F.cross_entropy(model(x_test), y_test)
print(f"final log loss {log_loss.item():.4f}")
