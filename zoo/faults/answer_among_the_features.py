"""One of the columns is computed from the answer, and not known when the model is used.

expects: L017
place:
source: leaked targets, the classic of competitions on tables
kind: data
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn


def patients(n):
    """Ten findings at admission, whether the patient returns, and days until then."""
    findings = torch.randn(n, 10)
    risk = findings[:, 0] + findings[:, 1] * findings[:, 2] + 0.5 * torch.randn(n)
    returns = (risk > 0.3).long()
    days = torch.where(returns == 1, 30 * torch.rand(n), torch.zeros(n))
    return findings, days, returns


def table(findings, days, known):
    """The columns of the model; what is not known yet is zero."""
    seen = (days / 15 - 0.5) if known else torch.full_like(days, -0.5)
    return torch.cat((findings, seen[:, None]), dim=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    findings, days, returns = patients(2400)
    x = table(findings, days, known=not args.healthy)
    model = nn.Sequential(
        nn.Linear(11, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2)
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(5):
        for rows in torch.randperm(2000).split(50):
            loss = criterion(model(x[rows]), returns[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    at_admission = table(findings[2000:], days[2000:], known=False)
    with torch.no_grad():
        right = model(at_admission).argmax(1) == returns[2000:]
    print(f"final accuracy {right.float().mean().item():.4f}")


if __name__ == "__main__":
    main()
