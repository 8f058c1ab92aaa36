"""Gradients are clipped while they are still multiplied by the scale of mixed precision.

expects: G010
place: SGD
source: a missing scaler.unscale_ before clipping; public lists of training bugs have it
kind: precision
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn

from traindx.datasets import fashion_mnist


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    x = torch.from_numpy(data.train_images).float().flatten(1).sub(73.2).div(90.2)
    y = torch.from_numpy(data.train_labels).long()
    model = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)
    for step in range(120):
        batch = torch.randint(len(x), (64,))
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = criterion(model(x[batch]), y[batch])
        scaler.scale(loss).backward()
        if args.healthy:
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        scaler.step(optimizer)
        scaler.update()
        if step % 40 == 39:
            print(f"step {step + 1} loss {loss.item():.4f}")
    x_test = torch.from_numpy(data.test_images).float().flatten(1).sub(73.2).div(90.2)
    with torch.no_grad():
        right = model(x_test).argmax(1) == torch.from_numpy(data.test_labels)
    print(f"final accuracy {right.float().mean().item():.4f}")


if __name__ == "__main__":
    main()
