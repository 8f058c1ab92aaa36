"""Films rated by users: a factorization with sparse embeddings, as in recommender systems.

Ratings are one to five stars, from hidden tastes and noise.

Expected: test rmse < 1.05 (stars; the mean rating errs by about 1.25).
"""

import argparse

import torch
from torch import nn

USERS, FILMS, FACTORS = 300, 200, 3


class MatrixFactorization(nn.Module):
    def __init__(self, factors, mean):
        super().__init__()
        self.user_factors = nn.Embedding(USERS, factors, sparse=True)
        self.film_factors = nn.Embedding(FILMS, factors, sparse=True)
        self.user_biases = nn.Embedding(USERS, 1, sparse=True)
        self.film_biases = nn.Embedding(FILMS, 1, sparse=True)
        self.mean = mean
        for factor in (self.user_factors, self.film_factors):
            nn.init.normal_(factor.weight, std=0.3)
        for bias in (self.user_biases, self.film_biases):
            nn.init.zeros_(bias.weight)

    def forward(self, user, film):
        dot = (self.user_factors(user) * self.film_factors(film)).sum(1)
        return self.mean + dot + self.user_biases(user)[:, 0] + self.film_biases(film)[:, 0]


def make_ratings(count):
    taste, kind = torch.randn(USERS, FACTORS), torch.randn(FILMS, FACTORS)
    liked = 0.4 * torch.randn(FILMS)
    user, film = torch.randint(USERS, (count,)), torch.randint(FILMS, (count,))
    stars = 3.2 + liked[film] + 0.6 * (taste[user] * kind[film]).sum(1)
    return user, film, (stars + 0.5 * torch.randn(count)).clamp(1, 5)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--factors", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=500)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    user, film, stars = make_ratings(17000)
    train, test = slice(0, 15000), slice(15000, None)
    model = MatrixFactorization(args.factors, stars[train].mean().item())
    optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=0.01)
    loss_fn = nn.MSELoss()
    print(f"the mean: rmse {(stars[test] - model.mean).square().mean().sqrt().item():.4f}")
    for epoch in range(args.epochs):
        for batch in torch.randperm(15000).split(args.batch_size):
            optimizer.zero_grad()
            loss = loss_fn(model(user[batch], film[batch]), stars[batch])
            loss.backward()
            optimizer.step()
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1}: mse {loss.item():.4f}")
    with torch.no_grad():
        error = loss_fn(model(user[test], film[test]), stars[test]).sqrt().item()
    print(f"test rmse: {error:.4f}")


if __name__ == "__main__":
    main()
