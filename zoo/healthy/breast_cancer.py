"""Benign or malignant, from thirty measurements (scikit-learn's data) in a pipeline of one's own.

A small estimator with `fit` and `predict`, as scikit-learn has them, cross-validated.

Expected: mean accuracy > 0.93 (always benign is right in 0.63).
"""

import argparse

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold
from torch import nn


class TorchClassifier:
    def __init__(self, hidden=16, epochs=20, lr=1e-2, batch_size=32):
        self.hidden, self.epochs, self.lr, self.batch_size = hidden, epochs, lr, batch_size

    def fit(self, X, y):
        self.mean_, self.scale_ = X.mean(0), X.std(0)
        X, y = self._tensor(X), torch.tensor(y, dtype=torch.float32)
        self.model_ = nn.Sequential(
            nn.Linear(X.shape[1], self.hidden), nn.ReLU(), nn.Linear(self.hidden, 1), nn.Flatten(0)
        )
        optimizer = torch.optim.SGD(
            self.model_.parameters(), lr=self.lr, momentum=0.9, weight_decay=1e-3
        )
        self.losses_ = []
        for _ in range(self.epochs):
            for idx in torch.randperm(len(X)).split(self.batch_size):
                loss = nn.functional.binary_cross_entropy_with_logits(self.model_(X[idx]), y[idx])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            self.losses_.append(loss.item())
        return self

    @torch.no_grad()
    def predict(self, X):
        return (self.model_(self._tensor(X)) > 0).long().numpy()

    def _tensor(self, X):
        return torch.tensor((X - self.mean_) / self.scale_, dtype=torch.float32)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hidden", type=int, default=16)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    X, y = load_breast_cancer(return_X_y=True)
    scores = []
    for train, test in StratifiedKFold(4, shuffle=True, random_state=args.seed).split(X, y):
        clf = TorchClassifier(hidden=args.hidden).fit(X[train], y[train])
        scores.append(np.mean(clf.predict(X[test]) == y[test]))
        print(f"loss {clf.losses_[-1]:.4f}, accuracy {scores[-1]:.4f}")
    print(f"mean accuracy: {np.mean(scores):.4f}")


if __name__ == "__main__":
    main()
