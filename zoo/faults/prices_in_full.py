"""The targets are prices in full, hundreds of thousands, and the network starts near zero.

expects: L016
place:
source: regressions on targets that nobody scaled, frequent on question-and-answer sites
kind: preprocessing
shows: final relative error lower
"""

import argparse

import torch
from sklearn.datasets import load_diabetes
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--healthy", action="store_true")
args = parser.parse_args()
torch.manual_seed(args.seed)

table = load_diabetes()
order = torch.randperm(len(table.target))
x = torch.tensor(table.data).float()[order]
x = x / x[:340].std(0)
cost = 1500 * torch.tensor(table.target).float()[order].unsqueeze(1)  # of a treatment

unit, offset = (cost[:340].std(), cost[:340].mean()) if args.healthy else (1.0, 0.0)
target = (cost - offset) / unit
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
criterion = nn.MSELoss()
for epoch in range(15):
    for rows in torch.randperm(340).split(20):
        loss = criterion(net(x[rows]), target[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1} loss {loss.item():.4g}")
with torch.no_grad():
    predicted = net(x[340:]) * unit + offset
    error = (predicted - cost[340:]).abs().mean() / cost[340:].mean()
print(f"final relative error {error.item():.4f}")
