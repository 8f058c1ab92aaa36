"""Autocast in float16 with a gradient scaler, and clipping of the unscaled gradients.

Expected: test accuracy > 0.76 (chance is 0.10).
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

from traindx.datasets import fashion_mnist


def batches(x, y, size):
    order = torch.randperm(len(x))
    for start in range(0, len(x) - size + 1, size):
        idx = order[start : start + size]
        yield x[idx], y[idx]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--no-amp", dest="amp", action="store_false")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    x = (torch.from_numpy(data.train_images).flatten(1).float() - 73) / 90
    x_test = (torch.from_numpy(data.test_images).flatten(1).float() - 73) / 90
    y = torch.from_numpy(data.train_labels).long()
    y_test = torch.from_numpy(data.test_labels).long()

    model = nn.Sequential(
        nn.Linear(784, args.width),
        nn.ReLU(),
        nn.Linear(args.width, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, enabled=args.amp)
    for epoch in range(args.epochs):
        for inputs, labels in batches(x, y, 100):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", dtype=torch.float16, enabled=args.amp):
                logits = model(inputs)
            loss = F.cross_entropy(logits.float(), labels)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            scaler.step(optimizer)
            scaler.update()
        with torch.no_grad():
            accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
        print(
            f"epoch {epoch}: loss {loss.item():.4f} scale {scaler.get_scale():.0f} {accuracy:.4f}"
        )
    print(f"test accuracy: {accuracy:.4f}")


if __name__ == "__main__":
    main()
