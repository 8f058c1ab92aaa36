"""Dropout stays on for prediction, to know how sure the network is (Monte Carlo dropout).

Expected: answered accuracy > 0.85 (on the half of the images it is surest of; chance is 0.10).
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

from traindx.datasets import fashion_mnist


class Net(nn.Module):
    def __init__(self, width, p):
        super().__init__()
        self.fc1 = nn.Linear(784, width)
        self.drop1 = nn.Dropout(p)
        self.fc2 = nn.Linear(width, width)
        self.drop2 = nn.Dropout(p)
        self.fc3 = nn.Linear(width, 10)

    def forward(self, x):
        x = self.drop1(F.relu(self.fc1(x)))
        x = self.drop2(F.relu(self.fc2(x)))
        return self.fc3(x)


def enable_dropout(model):
    for m in model.modules():
        if isinstance(m, nn.Dropout):
            m.train()


def predict(model, x, samples):
    model.eval()
    enable_dropout(model)
    with torch.no_grad():
        return torch.stack([model(x).softmax(1) for _ in range(samples)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--p", type=float, default=0.3)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    data = fashion_mnist.load_subset()
    x = torch.tensor(data.train_images).float().flatten(1).sub(73).div(90)
    x_test = torch.tensor(data.test_images).float().flatten(1).sub(73).div(90)
    y, y_test = torch.tensor(data.train_labels).long(), torch.tensor(data.test_labels).long()
    net = Net(args.width, args.p)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        net.train()
        for idx in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(net(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")

    probabilities = predict(net, x_test, samples=10)
    mean = probabilities.mean(0)
    entropy = -(mean * mean.clamp_min(1e-9).log()).sum(1)
    right = (mean.argmax(1) == y_test).float()
    print(f"all: {right.mean().item():.4f}, spread {probabilities.std(0).mean().item():.4f}")
    sure = entropy.argsort()[: len(entropy) // 2]
    print(f"answered accuracy: {right[sure].mean().item():.4f}")


if __name__ == "__main__":
    main()
