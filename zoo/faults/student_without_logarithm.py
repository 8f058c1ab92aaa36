"""A student learns from its teacher by a divergence that is given probabilities, not logarithms.

expects: L003
place:
source: the argument order and form of the Kullback-Leibler loss, which surprises many
kind: loss-pairing
shows: final agreement higher
"""

import argparse
import itertools

import torch
import torch.nn as nn
import torch.nn.functional as F

TEMPERATURE = 2.0


def mlp(*widths):
    layers = []
    for a, b in itertools.pairwise(widths):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    teacher = mlp(12, 64, 5).eval().requires_grad_(False)
    for p in teacher.parameters():
        p.mul_(2.5)
    student = mlp(12, 24, 5)
    form = F.log_softmax if args.healthy else F.softmax
    optimizer = torch.optim.Adam(student.parameters(), lr=5e-3)
    for step in range(250):
        x = torch.randn(64, 12)
        with torch.no_grad():
            soft_targets = F.softmax(teacher(x) / TEMPERATURE, dim=-1)
        prediction = form(student(x) / TEMPERATURE, dim=-1)
        loss = F.kl_div(prediction, soft_targets, reduction="batchmean") * TEMPERATURE**2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step:4d} distillation loss {loss.item():.4f}")
    x = torch.randn(2000, 12)
    with torch.no_grad():
        agreement = (student(x).argmax(1) == teacher(x).argmax(1)).float().mean().item()
    print(f"final agreement {agreement:.4f}")


if __name__ == "__main__":
    main()
