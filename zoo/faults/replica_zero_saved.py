"""Two replicas share gradients but not BatchNorm, and only the first one's statistics are kept.

expects: N014
place:
source: data-parallel training with broadcast_buffers off and shards of unlike data
kind: normalization
shows: final accuracy higher
"""

import argparse
import copy

import torch
from torch import nn
from torch.nn import functional as F


class Replicas:
    """Data-parallel training in one process: a copy of the model for each shard."""

    def __init__(self, model, count):
        self.models = [model, *(copy.deepcopy(model) for _ in range(count - 1))]
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def step(self, shards):
        self.optimizer.zero_grad()
        losses = []
        for model, (x, y) in zip(self.models, shards, strict=True):
            model.zero_grad(set_to_none=True)
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            losses.append(loss.item())
        self.all_reduce()
        self.optimizer.step()
        self.broadcast()
        return sum(losses) / len(losses)

    def all_reduce(self):
        for params in zip(*(model.parameters() for model in self.models), strict=True):
            params[0].grad = torch.stack([param.grad for param in params]).mean(0)

    @torch.no_grad()
    def broadcast(self):
        for params in zip(*(model.parameters() for model in self.models), strict=True):
            for param in params[1:]:
                param.copy_(params[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = torch.randn(4000, 14)
    y = (x @ torch.randn(14, 4)).argmax(1)
    x = x + 2 * (torch.arange(4000) % 2)[:, None]  # every other clinic has another device
    model = nn.Sequential(nn.Linear(14, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 4))
    replicas = Replicas(model, count=2)
    for step in range(200):
        drawn = torch.randint(1600, (2, 64)) * 2
        if args.healthy:
            drawn = drawn + torch.randint(2, (2, 64))
        else:
            drawn = drawn + torch.tensor([[0], [1]])
        loss = replicas.step([(x[i], y[i]) for i in drawn])
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss:.4f}")
    model.eval()
    with torch.no_grad():
        right = (model(x[3200:]).argmax(1) == y[3200:]).float().mean().item()
    print(f"final accuracy {right:.4f}")


if __name__ == "__main__":
    main()
