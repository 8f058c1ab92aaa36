"""The time of a measurement is a feature, in seconds since 1970.

expects: L007
place: net.0
source: timestamps used as they come out of a log
kind: preprocessing
shows: final mse lower
"""

import argparse

import torch
from torch import nn

DAY = 86400


class LoadForecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU())
        self.out = nn.Linear(40, 1)

    def forward(self, x):
        return self.out(self.net(x)).squeeze(1)


def measurements(n, since_start):
    """Temperature, wind, holiday and time of two months, and the load of a power grid."""
    elapsed = torch.rand(n, dtype=torch.float64) * 60 * DAY
    weather = torch.randn(n, 2)
    holiday = (torch.rand(n) < 0.1).float()
    growth = (elapsed / (60 * DAY)).float()
    load = 0.8 * weather[:, 0].abs() - 0.3 * weather[:, 1] - holiday + growth
    time = elapsed / (30 * DAY) - 1 if since_start else elapsed + 1_700_000_000
    return torch.cat((weather, holiday[:, None], time.float()[:, None]), dim=1), load


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x, load = measurements(2500, since_start=args.healthy)
    model = LoadForecast()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    mse = nn.MSELoss()
    for epoch in range(5):
        for rows in torch.randperm(2000).split(40):
            optimizer.zero_grad()
            loss = mse(model(x[rows]), load[rows])
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4g}")
    with torch.no_grad():
        print(f"final mse {mse(model(x[2000:]), load[2000:]).item():.4g}")


if __name__ == "__main__":
    main()
