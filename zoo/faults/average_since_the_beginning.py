"""With momentum=None the statistics average all batches since the start, and lag behind training.

expects: N001
place: 1
source: the cumulative average, meant for a last pass with fixed weights, used while they move
kind: normalization
shows: final loss lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class TabularNet(nn.Module):
    def __init__(self, momentum):
        super().__init__()
        self.add_module("0", nn.Linear(12, 64))
        self.add_module("1", nn.BatchNorm1d(64, momentum=momentum))
        self.add_module("2", nn.Linear(64, 64))
        self.add_module("3", nn.BatchNorm1d(64, momentum=momentum))
        self.add_module("4", nn.Linear(64, 1))

    def forward(self, x):
        lift, norm1, mix, norm2, out = self.children()
        x = F.relu(norm1(lift(x)))
        return out(F.relu(norm2(mix(x))))[:, 0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = torch.randn(5000, 12) + 2
    y = (x @ torch.randn(12)).sin() * 3
    net = TabularNet(0.1 if args.healthy else None)
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 400)
    for step in range(400):
        batch = torch.randint(4000, (100,))
        loss = F.mse_loss(net(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 99:
            net.eval()
            with torch.no_grad():
                held_out = F.mse_loss(net(x[4000:]), y[4000:]).item()
            net.train()
            print(f"step {step + 1} loss {loss.item():.4f} held out {held_out:.4f}")
    print(f"final loss {held_out:.4f}")


if __name__ == "__main__":
    main()
