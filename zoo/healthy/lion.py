"""An optimizer of one's own (Lion: the sign of an interpolated momentum, decoupled decay).

Expected: test accuracy > 0.75 (chance is 0.10).
"""

import argparse

import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


class Lion(Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["exp_avg"] = torch.zeros_like(p)
                exp_avg = state["exp_avg"]
                p.mul_(1 - group["lr"] * group["weight_decay"])
                update = exp_avg.lerp(p.grad, 1 - beta1).sign_()
                p.add_(update, alpha=-group["lr"])
                exp_avg.lerp_(p.grad, 1 - beta2)
        return loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    data = fashion_mnist.load_subset()
    x = (torch.tensor(data.train_images).flatten(1).float() - 73) / 90
    x_test = (torch.tensor(data.test_images).flatten(1).float() - 73) / 90
    y, y_test = torch.tensor(data.train_labels).long(), torch.tensor(data.test_labels).long()
    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)

    model = nn.Sequential(
        nn.Linear(784, args.width),
        nn.LayerNorm(args.width),
        nn.GELU(),
        nn.Linear(args.width, args.width),
        nn.LayerNorm(args.width),
        nn.GELU(),
        nn.Linear(args.width, 10),
    )
    optimizer = Lion(model.parameters(), lr=3e-4, weight_decay=0.1)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        model.train()
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(inputs), labels)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
        print(f"epoch {epoch}: loss {loss.item():.4f}, accuracy {accuracy:.4f}")
    print(f"test accuracy: {accuracy:.4f}")


if __name__ == "__main__":
    main()
