"""Evaluates before the first step, to have a point of comparison, and stops early.

Expected: best accuracy > 0.76 (chance is 0.10).
"""

import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split

from traindx.datasets import fashion_mnist


class EarlyStopping:
    def __init__(self, patience):
        self.patience = patience
        self.best_loss = float("inf")
        self.counter = 0

    def __call__(self, loss, model):
        if loss < self.best_loss:
            self.best_loss = loss
            self.counter = 0
            self.state = {k: v.detach().clone() for k, v in model.state_dict().items()}
        else:
            self.counter += 1
        return self.counter >= self.patience


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(1, width, 4, stride=4)
        self.bn = nn.BatchNorm2d(width)
        self.fc1 = nn.Linear(width * 49, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = torch.relu(self.bn(self.conv(x))).flatten(1)
        return self.fc2(torch.relu(self.fc1(x)))


def evaluate(model, loader, criterion):
    model.eval()
    loss = correct = count = 0
    with torch.no_grad():
        for x, y in loader:
            out = model(x)
            loss += criterion(out, y).item() * len(y)
            correct += (out.argmax(1) == y).sum().item()
            count += len(y)
    return loss / count, correct / count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--width", type=int, default=12)
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    x = (torch.tensor(data.train_images)[:, None].float() / 255 - 0.287) / 0.354
    x_test = (torch.tensor(data.test_images)[:, None].float() / 255 - 0.287) / 0.354
    full = TensorDataset(x, torch.tensor(data.train_labels).long())
    train_set, val_set = random_split(full, [5000, 1000])
    test_set = TensorDataset(x_test, torch.tensor(data.test_labels).long())
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=500)

    model = Net(args.width)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    stopper = EarlyStopping(patience=2)
    loss, accuracy = evaluate(model, val_loader, criterion)
    print(f"before training: val loss {loss:.4f}, val acc {accuracy:.4f}")
    for epoch in range(args.epochs):
        model.train()
        for inputs, labels in train_loader:
            optimizer.zero_grad()
            criterion(model(inputs), labels).backward()
            optimizer.step()
        loss, accuracy = evaluate(model, val_loader, criterion)
        print(f"epoch {epoch + 1}: val loss {loss:.4f}, val acc {accuracy:.4f}")
        if stopper(loss, model):
            print("stopped early")
            break
    model.load_state_dict(stopper.state)
    _, accuracy = evaluate(model, DataLoader(test_set, batch_size=500), criterion)
    print(f"best accuracy: {accuracy:.4f}")


if __name__ == "__main__":
    main()
