"""Survival with censoring: a network in place of the linear risk of Cox's model.

Expected: concordance > 0.64 (chance is 0.50).
"""

import argparse

import torch
from torch import nn


def patients(n, weights):
    x = torch.randn(n, 10)
    risk = 1.2 * torch.tanh(x @ weights) + 0.5 * (x[:, 0].square() - 1)
    event_time = -torch.rand(n).log() * torch.exp(-risk)
    censored_at = -torch.rand(n).log() * 2.0
    return x, torch.minimum(event_time, censored_at), event_time <= censored_at


def cox_loss(risk, time, event):
    """Negative partial log-likelihood; those at risk are all who live as long."""
    order = time.argsort(descending=True)
    risk, event = risk[order], event[order]
    log_at_risk = torch.logcumsumexp(risk, dim=0)
    return -(risk - log_at_risk)[event].mean()


def concordance(risk, time, event):
    earlier = (time[:, None] < time[None, :]) & event[:, None]
    return (risk[:, None] > risk[None, :])[earlier].float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--hidden", type=int, default=32)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    weights = torch.randn(10) / 10**0.5 * 1.5
    x, time, event = patients(3000, weights)
    x_test, time_test, event_test = patients(600, weights)
    print(f"seen to the end: {event.float().mean().item():.3f}")

    net = nn.Sequential(
        nn.Linear(10, args.hidden),
        nn.SELU(),
        nn.Dropout(0.1),
        nn.Linear(args.hidden, 1, bias=False),
        nn.Flatten(0),
    )
    optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3, weight_decay=1e-2)
    for epoch in range(args.epochs):
        net.train()
        for idx in torch.randperm(len(x)).split(150):
            loss = cox_loss(net(x[idx]), time[idx], event[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            score = concordance(net(x_test), time_test, event_test)
        print(f"epoch {epoch}: loss {loss.item():.4f}, concordance {score:.4f}")
    print(f"concordance: {score:.4f}")


if __name__ == "__main__":
    main()
