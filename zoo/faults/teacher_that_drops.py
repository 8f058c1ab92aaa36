"""The teacher of a distillation stays in train mode: its targets are made with dropout.

expects: E001
place:
source: no_grad() around a teacher taken for all it needs
kind: mode
shows: final loss lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

RULE = torch.linspace(-2, 2, 12 * 4).reshape(12, 4).sin()


def network(width, p):
    return nn.Sequential(
        nn.Linear(12, width), nn.ReLU(), nn.Dropout(p), nn.Linear(width, width), nn.ReLU(),
        nn.Dropout(p), nn.Linear(width, 4),
    )  # fmt: skip


def teach(teacher, x, y):
    optimizer = torch.optim.Adam(teacher.parameters(), lr=3e-3)
    for _ in range(250):
        batch = torch.randint(len(x), (100,))
        loss = F.cross_entropy(teacher(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"teacher loss {loss.item():.4f}")


def distil(teacher, student, x, temperature=2.0):
    optimizer = torch.optim.Adam(student.parameters(), lr=5e-3)
    for step in range(150):
        batch = torch.randint(len(x), (100,))
        with torch.no_grad():
            targets = F.softmax(teacher(x[batch]) / temperature, dim=1)
        scores = F.log_softmax(student(x[batch]) / temperature, dim=1)
        loss = F.kl_div(scores, targets, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = torch.randn(4000, 12)
    y = (x @ RULE).square().argmax(1)
    teacher, student = network(96, p=0.5), network(24, p=0.0)
    teach(teacher, x[:3000], y[:3000])
    teacher.train(not args.healthy)
    distil(teacher, student, x[:3000])
    student.eval()
    with torch.no_grad():
        print(f"final loss {F.cross_entropy(student(x[3000:]), y[3000:]).item():.4f}")


if __name__ == "__main__":
    main()
