"""Quantization-aware training: weights of four bits, activations of eight, straight-through.

Expected: quantized accuracy > 0.72 (chance is 0.10).
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

from traindx.datasets import fashion_mnist


class FakeQuantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, low, high):
        q = torch.round(x / scale)
        ctx.save_for_backward((q >= low) & (q <= high))
        return q.clamp(low, high) * scale

    @staticmethod
    def backward(ctx, grad):
        (inside,) = ctx.saved_tensors
        return grad * inside, None, None, None


class QLinear(nn.Linear):
    def __init__(self, *args, bits=4):
        super().__init__(*args)
        self.high = 2 ** (bits - 1) - 1

    def forward(self, x):
        scale = self.weight.detach().abs().amax(1, keepdim=True) / self.high
        weight = FakeQuantize.apply(self.weight, scale, -self.high, self.high)
        return F.linear(x, weight, self.bias)


class QReLU(nn.Module):
    """Eight bits between zero and a running maximum."""

    def __init__(self, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("maximum", torch.tensor(0.0))

    def forward(self, x):
        x = F.relu(x)
        if self.training:
            seen = x.detach().max()
            if self.maximum == 0:
                self.maximum.copy_(seen)
            else:
                self.maximum.lerp_(seen, self.momentum)
        return FakeQuantize.apply(x, self.maximum / 255, 0, 255)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bits", type=int, default=4)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    data = fashion_mnist.load_subset()
    x = (torch.tensor(data.train_images).flatten(1).float() - 73) / 90
    x_test = (torch.tensor(data.test_images).flatten(1).float() - 73) / 90
    y, y_test = torch.tensor(data.train_labels).long(), torch.tensor(data.test_labels).long()

    model = nn.Sequential(
        QLinear(784, args.width, bits=args.bits),
        QReLU(),
        QLinear(args.width, 64, bits=args.bits),
        QReLU(),
        QLinear(64, 10, bits=args.bits),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        model.train()
        for idx in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
        print(f"epoch {epoch}: loss {loss.item():.4f}, accuracy {accuracy:.4f}")
    print(f"quantized accuracy: {accuracy:.4f}")


if __name__ == "__main__":
    main()
