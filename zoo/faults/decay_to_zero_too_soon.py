"""The learning rate falls to zero over a fifth of the steps, and the rest is waiting.

expects: O005
place: AdamW
source: the number of steps of one epoch given to a schedule for all
kind: schedule
shows: final mse lower
"""

import argparse

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR


def linear_decay(optimizer, total):
    return LambdaLR(optimizer, lambda step: max(0.0, 1 - step / total))


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("waves", torch.randn(2, 32) * 2)
        self.mlp = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, xy):
        phase = xy @ self.waves
        return self.mlp(torch.cat((phase.sin(), phase.cos()), dim=-1)).squeeze(-1)


def target(xy):
    return torch.sin(4 * xy[:, 0]) * torch.cos(3 * xy[:, 1]) + 0.5 * xy[:, 0] * xy[:, 1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    epochs, steps_per_epoch = 5, 60
    total = epochs * steps_per_epoch if args.healthy else steps_per_epoch
    model = Field()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    scheduler = linear_decay(optimizer, total)
    for epoch in range(epochs):
        for _ in range(steps_per_epoch):
            xy = 2 * torch.rand(64, 2) - 1
            loss = (model(xy) - target(xy)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        print(f"epoch {epoch + 1} loss {loss.item():.5f} lr {scheduler.get_last_lr()[0]:.2g}")
    xy = 2 * torch.rand(2000, 2) - 1
    with torch.no_grad():
        print(f"final mse {(model(xy) - target(xy)).square().mean().item():.6f}")


if __name__ == "__main__":
    main()
