"""An RMSNorm that multiplies by weight is given the weights of one that multiplies by 1 + weight.

expects: E006
place:
source: the RMSNorm of Gemma against that of Llama, with the same names in their checkpoints
kind: checkpoint
shows: final loss lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class RMSNorm(nn.Module):
    def __init__(self, dim, offset):
        super().__init__()
        self.weight = nn.Parameter(torch.full((dim,), 1.0 - offset))
        self.offset = offset

    def forward(self, x):
        scale = (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
        return x * scale * (self.weight + self.offset)


class Net(nn.Module):
    def __init__(self, offset, dim=48):
        super().__init__()
        self.lift = nn.Linear(12, dim)
        self.norm1 = RMSNorm(dim, offset)
        self.mix = nn.Linear(dim, dim)
        self.norm2 = RMSNorm(dim, offset)
        self.out = nn.Linear(dim, 1)

    def forward(self, x):
        x = self.lift(x)
        x = x + F.silu(self.mix(self.norm1(x)))
        return self.out(self.norm2(x))[:, 0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = torch.randn(3000, 12)
    y = (x @ torch.randn(12)).tanh() + 0.5 * x[:, 0]
    net = Net(offset=1.0)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for step in range(150):
        batch = torch.randint(2400, (64,))
        loss = F.mse_loss(net(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")

    deployed = Net(offset=1.0 if args.healthy else 0.0)
    deployed.load_state_dict(net.state_dict())
    deployed.eval()
    with torch.no_grad():
        print(f"final loss {F.mse_loss(deployed(x[2400:]), y[2400:]).item():.4f}")


if __name__ == "__main__":
    main()
