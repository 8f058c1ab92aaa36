"""Strong weight decay is given all parameters, and shrinks the weights of the normalizations.

expects: N011
place: body.1
source: model.parameters() handed to AdamW with the decay meant for matrices
kind: normalization
shows: final loss lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


def build(depth=5, width=48):
    layers = []
    for i in range(depth):
        layers += [nn.Linear(16 if i == 0 else width, width), nn.LayerNorm(width), nn.ReLU()]
    return nn.Sequential(*layers)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = build()
        self.head = nn.Linear(48, 6)

    def forward(self, x):
        return self.head(self.body(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = torch.randn(4000, 16)
    y = (x @ torch.randn(16, 6)).argmax(1)
    net = Net()
    matrices = [p for p in net.parameters() if p.dim() > 1]
    vectors = [p for p in net.parameters() if p.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": 3.0},
        {"params": vectors, "weight_decay": 0.0 if args.healthy else 3.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=3e-3)
    recent = []
    for step in range(400):
        batch = torch.randint(len(x), (64,))
        loss = F.cross_entropy(net(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        recent = [*recent[-39:], loss.item()]
        if step % 80 == 79:
            print(f"step {step + 1} loss {loss.item():.4f}")
    print(f"final loss {sum(recent) / len(recent):.4f}")


if __name__ == "__main__":
    main()
