"""Two graph convolutions are two products with one matrix each, so both are a single linear map.

expects: S001
place:
source: message passing taken for a nonlinear operation
kind: nonlinearity
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn


class GraphConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, nodes, adjacency):
        return adjacency @ self.linear(nodes)


class GCN(nn.Module):
    def __init__(self, act):
        super().__init__()
        self.conv1 = GraphConv(4, 32)
        self.conv2 = GraphConv(32, 32)
        self.readout = nn.Linear(32, 2)
        self.act = act

    def forward(self, nodes, adjacency):
        h = self.act(self.conv1(nodes, adjacency))
        h = self.act(self.conv2(h, adjacency))
        return self.readout(h.mean(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    ring = torch.eye(10) + torch.eye(10).roll(1, 0) + torch.eye(10).roll(-1, 0)
    adjacency = ring / 3

    def molecules(n):
        """Ten atoms in a ring; what counts is how strongly neighbours pull, whichever way."""
        nodes = torch.randn(n, 10, 4)
        strong = torch.randint(2, (n,))
        pull = torch.where(strong == 1, 1.6, 0.6)[:, None]
        nodes[:, :, 0] *= pull
        return nodes, strong

    model = GCN(torch.relu if args.healthy else lambda h: h)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(200):
        nodes, strong = molecules(64)
        loss = nn.functional.cross_entropy(model(nodes, adjacency), strong)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    nodes, strong = molecules(1000)
    with torch.no_grad():
        accuracy = (model(nodes, adjacency).argmax(1) == strong).float().mean().item()
    print(f"final accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
