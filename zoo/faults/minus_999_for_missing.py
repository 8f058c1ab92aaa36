"""Cells that are missing hold -999, as the file format has it, and nobody replaces them.

expects: L007
place: 0
source: sentinels for missing values in old file formats
kind: preprocessing
shows: final mse lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--healthy", action="store_true")
args = parser.parse_args()
torch.manual_seed(args.seed)

# twelve stations, of which some do not answer; what is wanted is the wind at a thirteenth
field = torch.randn(3000, 3)
stations = torch.tanh(field @ torch.randn(3, 12)) + 0.1 * torch.randn(3000, 12)
wind = torch.sin(2 * field[:, 0]) + field[:, 1] * field[:, 2]
silent = torch.rand(3000, 12) < 0.08
stations[silent] = -999
if args.healthy:
    stations[silent] = 0

model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    for rows in torch.randperm(2500).split(50):
        loss = F.mse_loss(model(stations[rows]).squeeze(1), wind[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch + 1} loss {loss.item():.4f}")
with torch.no_grad():
    print(f"final mse {F.mse_loss(model(stations[2500:]).squeeze(1), wind[2500:]).item():.4f}")
