"""A training script grew out of a demo that calls eval() at once, so BatchNorm does nothing.

expects: N004
place: 1
source: eval() kept from an inference script in which it was right
kind: mode
shows: final loss lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    signals = torch.randn(6000, 24) * torch.logspace(-1.5, 1.5, 24)
    target = (signals / torch.logspace(-1.5, 1.5, 24)) @ torch.randn(24)
    model = nn.Sequential(
        nn.Linear(24, 48),
        nn.BatchNorm1d(48),
        nn.ReLU(),
        nn.Linear(48, 48),
        nn.BatchNorm1d(48),
        nn.ReLU(),
        nn.Linear(48, 1),
    )
    model.train(args.healthy)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for step in range(250):
        batch = torch.randint(len(signals), (64,))
        loss = F.mse_loss(model(signals[batch])[:, 0], target[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % 50 == 49:
            print(f"step {step + 1} loss {sum(losses[-50:]) / 50:.4f}")
    print(f"final loss {sum(losses[-50:]) / 50:.4f}")


if __name__ == "__main__":
    main()
