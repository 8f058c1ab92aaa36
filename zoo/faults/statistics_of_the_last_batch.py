"""A momentum of 0.99 is copied from Keras, so the running statistics are those of one batch.

expects: N019
place: 1
source: Keras documents 0.99 as the weight of the old value, PyTorch means that of the new one
kind: normalization
shows: final loss lower
"""

import argparse
import itertools

import torch
from torch import nn
from torch.nn import functional as F

MOMENTUM = 0.99


def mlp(momentum, sizes=(20, 64, 64)):
    layers = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs, momentum=momentum), nn.ELU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], 3))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = torch.randn(5000, 20)
    y = (x @ torch.randn(20, 3)).argmax(1)
    net = mlp(1 - MOMENTUM if args.healthy else MOMENTUM)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 500)
    held_out = []
    for step in range(500):
        net.train()
        batch = torch.randint(4000, (16,))
        loss = F.cross_entropy(net(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 20 == 19:
            net.eval()
            with torch.no_grad():
                held_out.append(F.cross_entropy(net(x[4000:]), y[4000:]).item())
        if step % 100 == 99:
            print(f"step {step + 1} loss {loss.item():.4f} held out {held_out[-1]:.4f}")
    print(f"final loss {sum(held_out[-10:]) / 10:.4f}")


if __name__ == "__main__":
    main()
