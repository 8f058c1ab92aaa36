"""The model overrides train() and sets its own flag alone: no child ever leaves eval mode again.

expects: N004
place: norm
source: an override of train() that forgets super().train(mode)
kind: mode
shows: provable: after the first eval() no call of train() reaches BatchNorm and dropout
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class Mixer(nn.Module):
    def __init__(self, recurse):
        super().__init__()
        self.recurse = recurse
        self.inner = nn.Linear(18, 64)
        self.norm = nn.BatchNorm1d(64)
        self.drop = nn.Dropout(0.2)
        self.outer = nn.Linear(64, 4)

    def train(self, mode=True):
        if self.recurse or not mode:
            return super().train(mode)
        self.training = mode  # only that: the augmentation below asks for it
        return self

    def forward(self, x):
        if self.training:
            x = x + 0.05 * torch.randn_like(x)
        return self.outer(self.drop(F.relu(self.norm(self.inner(x)))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = 3 * torch.randn(4096, 18) + 1
    y = (x @ torch.randn(18, 4)).argmax(1)
    mixer = Mixer(recurse=args.healthy)
    optimizer = torch.optim.SGD(mixer.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(4):
        mixer.train()
        for batch in torch.randperm(3072).split(64):
            loss = F.cross_entropy(mixer(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        mixer.eval()
        with torch.inference_mode():
            right = (mixer(x[3072:]).argmax(1) == y[3072:]).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.4f} right {right:.4f}")


if __name__ == "__main__":
    main()
