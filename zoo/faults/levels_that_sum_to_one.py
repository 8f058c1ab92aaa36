"""The fill levels of five tanks are independent, but a softmax makes them sum to one.

expects: L003
place:
source: a softmax for "values between 0 and 1"
kind: loss-pairing
shows: final error lower
"""

import argparse

import torch
from torch import nn

LAST = {"softmax": nn.Softmax(dim=-1), "sigmoid": nn.Sigmoid()}


def sensors(n, mixing):
    levels = torch.rand(n, 5)
    readings = (levels @ mixing).tanh() + 0.02 * torch.randn(n, 10)
    return readings, levels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    mixing = torch.randn(5, 10)
    x, levels = sensors(2000, mixing)
    x_val, levels_val = sensors(500, mixing)
    last = LAST["sigmoid" if args.healthy else "softmax"]
    model = nn.Sequential(nn.Linear(10, 64), nn.SiLU(), nn.Linear(64, 5), last)
    loss_fn = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(5):
        for idx in torch.randperm(len(x)).split(50):
            loss = loss_fn(model(x[idx]), levels[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.5f}")
    with torch.no_grad():
        print(f"final error {(model(x_val) - levels_val).abs().mean().item():.4f}")


if __name__ == "__main__":
    main()
