"""Square matrices of another framework are loaded as they are, inputs and outputs exchanged.

expects: E014
place: body.0
source: the layout of dense layers, which differs between frameworks and shows only if not square
kind: checkpoint
shows: final mse lower
"""

import argparse

import numpy as np
import torch
from torch import nn


def foreign_network(rng):
    """Weights as the other framework keeps them: inputs first."""
    square = [rng.normal(0, 1.4 / 32**0.5, (32, 32)).astype(np.float32) for _ in range(2)]
    head = rng.normal(0, 0.3, (32, 1)).astype(np.float32)

    def predict(x):
        for w in square:
            x = np.maximum(x @ w, 0)
        return x @ head

    return square, head, predict


class Ported(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.head = nn.Linear(32, 1)

    def forward(self, x):
        return self.head(self.body(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)

    square, head, predict = foreign_network(rng)
    model = Ported()
    with torch.no_grad():
        for layer, w in zip((model.body[0], model.body[2]), square, strict=True):
            layer.weight.copy_(torch.from_numpy(w.T if args.healthy else w))
            layer.bias.zero_()
        model.head.weight.copy_(torch.from_numpy(head.T))
        model.head.bias.zero_()

    # a little fine-tuning, at a rate that keeps what has been learned
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(60):
        x = rng.normal(size=(32, 32)).astype(np.float32)
        y = predict(x) + 0.05 * rng.normal(size=(32, 1)).astype(np.float32)
        loss = nn.functional.mse_loss(model(torch.from_numpy(x)), torch.from_numpy(y).float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    x = rng.normal(size=(1000, 32)).astype(np.float32)
    with torch.no_grad():
        mse = nn.functional.mse_loss(model(torch.from_numpy(x)), torch.from_numpy(predict(x)))
    print(f"final mse {mse.item():.5f}")


if __name__ == "__main__":
    main()
