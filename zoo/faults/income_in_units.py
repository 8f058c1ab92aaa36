"""Age stands beside income in single units of money, and none of the columns is scaled.

expects: L007
place: 0
source: tables of columns in unlike units, a frequent kind of missing preprocessing
kind: preprocessing
shows: final accuracy higher
"""

import argparse

import numpy as np
import torch
from torch import nn


def applicants(n, rng):
    age = rng.normal(45, 12, n)
    income = rng.lognormal(10.6, 0.4, n)
    debts = rng.lognormal(8.5, 0.8, n)
    children = rng.poisson(1.3, n)
    years_employed = rng.exponential(6, n)
    score = (
        (np.log(income) - 10.6) * 3
        - (np.log(debts) - 8.5)
        + 0.15 * years_employed
        - 0.5 * children
        - 0.03 * np.abs(age - 45)
    )
    table = np.stack([age, income, debts, children, years_employed], axis=1)
    return table.astype(np.float32), (score > 0).astype(np.int64)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)

    table, repaid = applicants(3000, rng)
    if args.healthy:
        table = (table - table[:2400].mean(0)) / table[:2400].std(0)
    x, y = torch.from_numpy(table), torch.from_numpy(repaid)
    model = nn.Sequential(
        nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(6):
        for rows in torch.randperm(2400).split(48):
            loss = loss_fn(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        accuracy = (model(x[2400:]).argmax(1) == y[2400:]).float().mean().item()
    print(f"final accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
