"""An image and a text model are trained, and the projector between them is in no optimizer.

expects: O011
place: projector
source: a list of parameters put together by hand
kind: optimizer
shows: final loss lower
"""

import argparse
from itertools import chain

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
    images = torch.from_numpy(data.train_images).float().flatten(1).sub(73.2).div(90.2)
    names = torch.from_numpy(data.train_labels).long()

    vision = nn.Sequential(nn.Linear(784, 8), nn.Tanh())
    projector = nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 8))
    caption = nn.Sequential(nn.Linear(8, 10))
    parts = [vision, caption]
    if args.healthy:
        parts.append(projector)
    optimizer = torch.optim.Adam(chain.from_iterable(p.parameters() for p in parts), lr=2e-3)
    criterion = nn.CrossEntropyLoss()

    def loss_of(x, y):
        return criterion(caption(projector(vision(x))), y)

    for step in range(200):
        i = torch.randint(len(images), (64,))
        loss = loss_of(images[i], names[i])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    test = torch.from_numpy(data.test_images).float().flatten(1).sub(73.2).div(90.2)
    with torch.no_grad():
        print(f"final loss {loss_of(test, torch.from_numpy(data.test_labels).long()).item():.4f}")


if __name__ == "__main__":
    main()
