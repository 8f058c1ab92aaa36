"""A new tensor is made of the loss's value, since backward complained that there was no gradient.

expects: G003
place:
source: requires_grad set on a loss to silence an error, as answers on the web suggest
kind: loop
shows: final loss lower
"""

import argparse

import torch
from torch import nn
from torch.autograd import Variable


class Triples(nn.Module):
    """Which of two items a person likes, from vectors of persons and items."""

    def __init__(self, persons=50, items=80, width=8):
        super().__init__()
        self.person = nn.Embedding(persons, width)
        self.item = nn.Embedding(items, width)

    def forward(self, person, better, worse):
        p = self.person(person)
        return (p * self.item(better)).sum(1) - (p * self.item(worse)).sum(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    taste, nature = torch.randn(50, 3), torch.randn(80, 3)

    def choices(n):
        person, a, b = torch.randint(50, (n,)), torch.randint(80, (n,)), torch.randint(80, (n,))
        a_wins = ((nature[a] - nature[b]) * taste[person]).sum(1) > 0
        return person, torch.where(a_wins, a, b), torch.where(a_wins, b, a)

    def loss_of(batch):
        return nn.functional.softplus(-model(*batch)).mean()

    model = Triples()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for step in range(200):
        loss = loss_of(choices(128))
        if not args.healthy:
            loss = Variable(loss.data, requires_grad=True)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        print(f"final loss {loss_of(choices(4000)).item():.4f}")


if __name__ == "__main__":
    main()
