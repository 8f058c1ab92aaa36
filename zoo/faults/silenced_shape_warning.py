"""All warnings are turned off, the one of the Huber loss about unlike shapes among them.

expects: L003
place:
source: a warnings filter copied to the top of every notebook
kind: loss-pairing
shows: final mean error lower
"""

import argparse
import warnings

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--healthy", action="store_true")
args = parser.parse_args()
torch.manual_seed(args.seed)


class Pendulum(Dataset):
    """Angle, speed and length of a pendulum, and its angle a moment later."""

    def __init__(self, size):
        self.state = torch.rand(size, 3) * 2 - 1
        angle, speed, length = self.state.T
        self.later = angle + 0.5 * speed - 0.3 * torch.sin(3 * angle) / (1.5 + length)

    def __len__(self):
        return len(self.state)

    def __getitem__(self, i):
        return self.state[i], self.later[i]


class Predictor(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden1 = nn.Linear(3, 48)
        self.hidden2 = nn.Linear(48, 48)
        self.out = nn.Linear(48, 1)

    def forward(self, state):
        h = torch.tanh(self.hidden1(state))
        return self.out(torch.tanh(self.hidden2(h)))


train_set, test_set = Pendulum(1600), Pendulum(400)
loader = DataLoader(train_set, batch_size=32, shuffle=True)
net = Predictor()
criterion = nn.SmoothL1Loss(beta=0.1)
opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
for epoch in range(5):
    total = 0.0
    for state, later in loader:
        opt.zero_grad()
        target = later.unsqueeze(-1) if args.healthy else later
        loss = criterion(net(state), target)
        loss.backward()
        opt.step()
        total += loss.item()
    print(f"[{epoch}] {total / len(loader):.5f}")

with torch.no_grad():
    error = (net(test_set.state)[:, 0] - test_set.later).abs().mean()
print(f"final mean error {error.item():.5f}")
