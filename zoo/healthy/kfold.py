"""Five-fold cross-validation: a new model, scaler and optimizer for every fold.

Expected: mean accuracy > 0.85 (chance is 0.50).
"""

import argparse
import statistics

import torch
from torch import nn


def kfold_indices(n, k):
    folds = torch.randperm(n).chunk(k)
    for i in range(k):
        yield torch.cat([f for j, f in enumerate(folds) if j != i]), folds[i]


def reset(hidden):
    model = nn.Sequential(nn.Linear(10, hidden), nn.ReLU(), nn.Linear(hidden, 1))
    return model, torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-4)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--k-folds", type=int, default=5)
    parser.add_argument("--hidden", type=int, default=32)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    # inside or outside of an ellipsoid that only four of ten features matter for
    features = torch.randn(1000, 10) * 2 + 5
    inside = ((features[:, :4] - 5) / 2).square().sum(1) < 3.36
    labels = inside.float().unsqueeze(1)

    criterion = nn.BCEWithLogitsLoss()
    scores = []
    for fold, (train_ids, test_ids) in enumerate(kfold_indices(len(features), args.k_folds)):
        model, optimizer = reset(args.hidden)
        x, y = features[train_ids], labels[train_ids]
        mean, std = x.mean(0), x.std(0)
        x, x_test = (x - mean) / std, (features[test_ids] - mean) / std
        for _ in range(10):
            for idx in torch.randperm(len(x)).split(50):
                optimizer.zero_grad()
                loss = criterion(model(x[idx]), y[idx])
                loss.backward()
                optimizer.step()
        with torch.no_grad():
            correct = (model(x_test) > 0).float() == labels[test_ids]
        scores.append(correct.float().mean().item())
        print(f"Accuracy for fold {fold}: {scores[-1]:.4f}")
    print(f"mean accuracy: {statistics.mean(scores):.4f}")


if __name__ == "__main__":
    main()
