"""Three quantiles of a target whose spread depends on the input, by the pinball loss.

Expected: miscoverage < 0.06 (largest difference between a quantile and the share below it).
"""

import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=600)
parser.add_argument("--hidden", type=int, default=32)
args = parser.parse_args()
torch.manual_seed(args.seed)

quantiles = torch.tensor([0.1, 0.5, 0.9])


def draw(n):
    x = 2 * torch.rand(n, 1) - 1
    spread = 0.1 + 0.4 * (x + 1)
    return x / 0.577, torch.sin(3 * x) + spread * torch.randn(n, 1)


def pinball(predicted, target):
    error = target - predicted
    return torch.maximum(quantiles * error, (quantiles - 1) * error).sum(1).mean()


net = nn.Sequential(
    nn.Linear(1, args.hidden), nn.ReLU(),
    nn.Linear(args.hidden, args.hidden), nn.ReLU(),
    nn.Linear(args.hidden, 3),
)  # fmt: skip
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
decay = torch.optim.lr_scheduler.PolynomialLR(opt, total_iters=args.steps, power=1.0)
for step in range(args.steps):
    x, y = draw(128)
    loss = pinball(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    decay.step()
    if step % 150 == 0:
        print("step", step, "pinball", round(loss.item(), 4))

with torch.no_grad():
    x, y = draw(5000)
    below = (y <= net(x)).float().mean(0)
print("below:", [round(b, 3) for b in below.tolist()])
print(f"miscoverage: {(below - quantiles).abs().max().item():.4f}")
