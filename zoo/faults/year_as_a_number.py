"""The year is a feature, about two thousand with a spread of five, beside standardized ones.

expects: L007
place: rnn
source: calendar columns passed over when the others were scaled
kind: preprocessing
shows: final error lower
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class YieldModel(nn.Module):
    """Reads the seasons of a field, predicts its harvest."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 32, batch_first=True)
        self.head = nn.Linear(32, 1)

    def forward(self, seasons):
        return self.head(self.rnn(seasons)[0][:, -1]).squeeze(1)


def fields(n):
    weather = torch.randn(n, 8, 3)
    year = 2015 + torch.randint(-7, 8, (n, 1, 1)) + torch.arange(8)[None, :, None] / 8
    harvest = weather[:, :, 0].mean(1) * 2 + torch.relu(weather[:, -1, 1])
    harvest = harvest + 0.1 * (year[:, -1, 0] - 2015)
    return torch.cat((weather, year), dim=2), harvest


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    seasons, harvest = fields(1500)
    if args.healthy:
        seasons[:, :, 3] = (seasons[:, :, 3] - 2015) / 4.3
    model = YieldModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(4):
        for rows in torch.randperm(1200).split(40):
            loss = F.mse_loss(model(seasons[rows]), harvest[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        error = F.l1_loss(model(seasons[1200:]), harvest[1200:]).item()
    print(f"final error {error:.4f}")


if __name__ == "__main__":
    main()
