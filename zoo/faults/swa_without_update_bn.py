"""Stochastic weight averaging ends without a pass that gives the average statistics of its own.

expects: E006
place:
source: the documentation of torch.optim.swa_utils, which asks for update_bn at the end
kind: checkpoint
shows: final loss lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn


class Net(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.first = nn.Linear(20, width)
        self.norm1 = nn.BatchNorm1d(width)
        self.second = nn.Linear(width, width)
        self.norm2 = nn.BatchNorm1d(width)
        self.last = nn.Linear(width, 4)

    def forward(self, x):
        x = F.relu(self.norm1(self.first(x)))
        return self.last(F.relu(self.norm2(self.second(x))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = 2 * torch.randn(4000, 20) + 1
    y = (x @ torch.randn(20, 4)).argmax(1)
    batches = [torch.arange(i, i + 80) for i in range(0, 3200, 80)]
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    average = AveragedModel(model)
    swa_schedule = SWALR(optimizer, swa_lr=0.5, anneal_epochs=1)
    for epoch in range(8):
        for batch in batches:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[batch]), y[batch])
            loss.backward()
            optimizer.step()
        if epoch >= 4:
            average.update_parameters(model)
            swa_schedule.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")

    if args.healthy:
        update_bn((x[batch] for batch in batches), average)
    average.eval()
    with torch.no_grad():
        print(f"final loss {F.cross_entropy(average(x[3200:]), y[3200:]).item():.4f}")


if __name__ == "__main__":
    main()
