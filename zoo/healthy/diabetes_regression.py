"""Progression of diabetes a year later (scikit-learn's data), the target left as it is.

The bias of the last layer starts at the mean of the training targets.

Expected: test rmse < 67.0 (the mean errs by about 77).
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--hidden", type=int, default=32)
parser.add_argument("--epochs", type=int, default=60)
args = parser.parse_args()
torch.manual_seed(args.seed)

X, y = load_diabetes(return_X_y=True, scaled=False)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=args.seed)
scaler = StandardScaler().fit(X_train)
X_train, X_test = (
    torch.from_numpy(scaler.transform(part).astype(np.float32)) for part in (X_train, X_test)
)
y_train, y_test = (torch.from_numpy(part.astype(np.float32))[:, None] for part in (y_train, y_test))

net = nn.Sequential(
    nn.Linear(10, args.hidden),
    nn.ReLU(),
    nn.Dropout(0.1),
    nn.Linear(args.hidden, 1),
)
nn.init.constant_(net[-1].bias, y_train.mean().item())
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, weight_decay=1e-3)
criterion = nn.MSELoss()
for epoch in range(args.epochs):
    net.train()
    for idx in torch.randperm(len(X_train)).split(32):
        optimizer.zero_grad()
        loss = criterion(net(X_train[idx]), y_train[idx])
        loss.backward()
        optimizer.step()
    if epoch % 15 == 14:
        print(f"epoch {epoch + 1}: training rmse {loss.item() ** 0.5:.2f}")

net.eval()
with torch.no_grad():
    rmse = criterion(net(X_test), y_test).sqrt().item()
print(f"the mean: rmse {(y_test - y_train.mean()).square().mean().sqrt().item():.2f}")
print(f"test rmse: {rmse:.3f}")
