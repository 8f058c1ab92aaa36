"""A small capsule network with two rounds of routing, and the margin loss.

Expected: test accuracy > 0.66 (chance is 0.10).
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

from traindx.datasets import fashion_mnist


def squash(s):
    squared = s.square().sum(-1, keepdim=True)
    return squared / (1 + squared) * s / (squared + 1e-8).sqrt()


class PrimaryCapsules(nn.Module):
    def __init__(self, channels, capsules=8, size=4):
        super().__init__()
        self.size = size
        self.conv = nn.Conv2d(channels, capsules * size, 3, stride=2)

    def forward(self, x):
        u = self.conv(x)
        u = u.view(len(x), -1, self.size, u.shape[-2] * u.shape[-1]).transpose(2, 3)
        return squash(u.reshape(len(x), -1, self.size))


class ClassCapsules(nn.Module):
    def __init__(self, capsules, inputs=4, outputs=8, classes=10, rounds=2):
        super().__init__()
        self.rounds = rounds
        self.W = nn.Parameter(0.1 * torch.randn(capsules, classes, inputs, outputs))

    def forward(self, u):
        votes = torch.einsum("nci,ckio->ncko", u, self.W)
        fixed = votes.detach()
        logits = torch.zeros(votes.shape[:3])
        for _ in range(self.rounds - 1):
            v = squash((logits.softmax(2)[..., None] * fixed).sum(1))
            logits = logits + (fixed * v[:, None]).sum(-1)
        return squash((logits.softmax(2)[..., None] * votes).sum(1))


class CapsNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.conv = nn.Conv2d(1, width, 5)
        self.primary = PrimaryCapsules(width)
        self.digits = ClassCapsules(8 * 16)

    def forward(self, x):
        return self.digits(self.primary(F.relu(self.conv(x)))).norm(dim=-1)


def margin_loss(lengths, labels):
    t = F.one_hot(labels, 10).float()
    present = t * F.relu(0.9 - lengths).square()
    absent = 0.5 * (1 - t) * F.relu(lengths - 0.1).square()
    return (present + absent).sum(1).mean()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=130)
    parser.add_argument("--width", type=int, default=16)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    data = fashion_mnist.load_subset()
    x = F.avg_pool2d((torch.tensor(data.train_images)[:, None].float() - 73) / 80, 2)
    x_test = F.avg_pool2d((torch.tensor(data.test_images)[:, None].float() - 73) / 80, 2)
    y, y_test = torch.tensor(data.train_labels).long(), torch.tensor(data.test_labels).long()
    model = CapsNet(args.width)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(args.steps):
        idx = torch.randint(len(x), (50,))
        loss = margin_loss(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(f"step {step} margin loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        lengths = torch.cat([model(part) for part in x_test.split(250)])
    print(f"test accuracy: {(lengths.argmax(1) == y_test).float().mean().item():.4f}")
