"""Six blocks are wanted, and one block is put into the network six times.

expects: S015
place: blocks
source: a list that is multiplied, `[Block()] * 6`, as questions on the web show it
kind: architecture
shows: provable: a list times six holds one object six times, so five blocks have no weights
"""

import argparse

import torch
from torch import nn

from traindx.datasets import fashion_mnist

DEPTH = 6


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.narrow(torch.relu(self.wide(self.norm(x))))


class Net(nn.Module):
    def __init__(self, blocks, width):
        super().__init__()
        self.inlet = nn.Linear(784, width)
        self.blocks = nn.ModuleList(blocks)
        self.outlet = nn.Linear(width, 10)

    def forward(self, x):
        x = self.inlet(x)
        for block in self.blocks:
            x = block(x)
        return self.outlet(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    images = torch.from_numpy(data.train_images).float().flatten(1).sub(73.2).div(90.2)
    labels = torch.from_numpy(data.train_labels).long()
    blocks = [Block(48) for _ in range(DEPTH)] if args.healthy else [Block(48)] * DEPTH
    model = Net(blocks, 48)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(150):
        batch = torch.randint(len(images), (64,))
        loss = criterion(model(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    print(f"final parameters {sum(p.numel() for p in model.parameters())}")


if __name__ == "__main__":
    main()
