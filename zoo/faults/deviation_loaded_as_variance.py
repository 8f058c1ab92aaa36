"""A port writes standard deviations into running_var, which is to hold variances.

expects: E006
place:
source: frameworks and papers that store sigma where PyTorch stores sigma squared
kind: checkpoint
shows: final loss lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


def build():
    return nn.Sequential(
        nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU(),
        nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(),
        nn.Linear(64, 5),
    )  # fmt: skip


def export(net):
    """Plain arrays, as another framework writes them: the spread as a standard deviation."""
    arrays = {name: value.numpy().copy() for name, value in net.state_dict().items()}
    for name in arrays:
        if name.endswith("running_var"):
            arrays[name] = arrays[name] ** 0.5
    return arrays


def port(arrays, squared):
    state = {name: torch.from_numpy(value) for name, value in arrays.items()}
    for name, value in state.items():
        if name.endswith("running_var") and squared:
            state[name] = value.square()
    net = build()
    net.load_state_dict(state)
    return net


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = torch.randn(4000, 16) * 0.02
    y = (x @ torch.randn(16, 5)).argmax(1)
    net = build()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for step in range(200):
        batch = torch.randint(3200, (64,))
        loss = F.cross_entropy(net(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")

    ported = port(export(net), squared=args.healthy)
    ported.eval()
    with torch.no_grad():
        print(f"final loss {F.cross_entropy(ported(x[3200:]), y[3200:]).item():.4f}")


if __name__ == "__main__":
    main()
