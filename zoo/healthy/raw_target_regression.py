"""Predicts temperatures in degrees Celsius as they are, without scaling them first.

Expected: mean absolute error < 1.5 (degrees; the mean temperature errs by about 6).
"""

import argparse
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def weather(n):
    day = torch.randint(365, (n,))
    hour = torch.randint(24, (n,))
    altitude = 800 * torch.rand(n)
    cloud = torch.rand(n)
    season = -torch.cos(2 * math.pi * (day - 15) / 365)
    daily = -torch.cos(2 * math.pi * (hour - 3) / 24) * (1 - 0.7 * cloud)
    temperature = 12 + 9 * season + 4 * daily - 0.0065 * altitude + 0.5 * torch.randn(n)
    features = torch.stack(
        [
            torch.sin(2 * math.pi * day / 365),
            torch.cos(2 * math.pi * day / 365),
            torch.sin(2 * math.pi * hour / 24),
            torch.cos(2 * math.pi * hour / 24),
            (altitude - 400) / 230,
            (cloud - 0.5) / 0.29,
        ],
        dim=1,
    )
    return features, temperature[:, None]


def main(args):
    torch.manual_seed(args.seed)
    dataset = TensorDataset(*weather(4000))
    train_set, val_set = random_split(dataset, [3200, 800])
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=400)

    layers, width = [], 6
    for _ in range(args.depth):
        layers += [nn.Linear(width, args.width), nn.ReLU()]
        width = args.width
    model = nn.Sequential(*layers, nn.Linear(width, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    loss_fn = nn.MSELoss()
    for epoch in range(args.epochs):
        model.train()
        for x, y in train_loader:
            loss = loss_fn(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        model.eval()
        error = 0.0
        with torch.no_grad():
            for x, y in val_loader:
                error += (model(x) - y).abs().sum().item()
        print(f"epoch {epoch + 1}: train mse {loss.item():.3f}, mae {error / len(val_set):.3f}")
    print(f"mean absolute error: {error / len(val_set):.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=8)
    main(parser.parse_args())
