"""Training goes on from a checkpoint that holds the weights, and not the state of Adam.

expects: O009
place: Adam
source: checkpoints of the model alone
kind: checkpoint
shows: final worst loss lower
"""

import argparse
import io

import torch
from sklearn.datasets import load_diabetes
from torch import nn


def start():
    model = nn.Sequential(
        nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)
    )
    return model, torch.optim.Adam(model.parameters(), lr=0.01)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    table = load_diabetes()
    x = torch.tensor(table.data).float() * 20
    y = torch.tensor(table.target).float().sub(152).div(77).unsqueeze(1)

    def train(model, optimizer, steps):
        losses = []
        for _ in range(steps):
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    model, optimizer = start()
    first = train(model, optimizer, 400)
    print(f"before the interruption: {sum(first[-20:]) / 20:.4f}")
    disk = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, disk)

    disk.seek(0)
    saved = torch.load(disk, weights_only=True)
    model, optimizer = start()
    model.load_state_dict(saved["model"])
    if args.healthy:
        optimizer.load_state_dict(saved["optimizer"])
    second = train(model, optimizer, 100)
    print(f"at the end: {second[-1]:.4f}")
    print(f"final worst loss {max(second):.4f}")


if __name__ == "__main__":
    main()
