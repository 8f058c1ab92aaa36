"""The number of a shop is an identifier, and goes into the network as if it were a quantity.

expects: L007
place: hidden
source: categories given as numbers, a kind of missing preprocessing in fault collections
kind: preprocessing
shows: final error lower
"""

import argparse

import torch
from torch import nn

SHOPS = 60


class Sales(nn.Module):
    def __init__(self, embed):
        super().__init__()
        self.shop = nn.Embedding(SHOPS, 8) if embed else None
        self.hidden = nn.Linear(2 + (8 if embed else 1), 48)
        self.out = nn.Linear(48, 1)

    def forward(self, weather, shop):
        number = self.shop(shop) if self.shop else (1000.0 + 37 * shop[:, None])
        x = torch.cat((weather, number), dim=1)
        return self.out(torch.relu(self.hidden(x))).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    usual = torch.randn(SHOPS)
    weather, shop = torch.randn(3000, 2), torch.randint(SHOPS, (3000,))
    sold = usual[shop] + 0.5 * weather[:, 0] * (usual[shop] > 0) + 0.1 * torch.randn(3000)

    model = Sales(embed=args.healthy)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    loss_fn = nn.SmoothL1Loss()
    for epoch in range(6):
        for rows in torch.randperm(2500).split(50):
            loss = loss_fn(model(weather[rows], shop[rows]), sold[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        error = (model(weather[2500:], shop[2500:]) - sold[2500:]).abs().mean().item()
    print(f"final error {error:.4f}")


if __name__ == "__main__":
    main()
