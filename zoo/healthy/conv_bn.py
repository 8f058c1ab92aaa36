"""A convolutional network with BatchNorm and dropout on Fashion-MNIST.

Expected: test accuracy > 0.80 (chance is 0.10).
"""

import argparse

import torch
import torch.nn as nn
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(16)
        self.pool = nn.MaxPool2d(2)
        self.dropout = nn.Dropout(0.25)
        self.fc = nn.Linear(16 * 7 * 7, 10)

    def forward(self, x):
        x = self.pool(torch.relu(self.bn1(self.conv1(x))))
        x = self.pool(torch.relu(self.bn2(self.conv2(x))))
        return self.fc(self.dropout(x.flatten(1)))


def train(model, loader, criterion, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        output = model(data)
        loss = criterion(output, target)
        loss.backward()
        optimizer.step()
        if batch_idx % 40 == 0:
            print(f"Train Epoch: {epoch} [{batch_idx}/{len(loader)}]\tLoss: {loss.item():.6f}")


def test(model, loader, criterion):
    model.eval()
    test_loss = 0
    correct = 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data)
            test_loss += criterion(output, target).item() * len(target)
            correct += output.argmax(dim=1).eq(target).sum().item()
    count = len(loader.dataset)
    print(f"Test set: average loss {test_loss / count:.4f}, {correct}/{count} right")
    return correct / count


def make_loader(images, labels, **options):
    images = torch.tensor(images).unsqueeze(1).float().div(255).sub(0.2869).div(0.3538)
    return DataLoader(TensorDataset(images, torch.tensor(labels).long()), **options)


def main():
    parser = argparse.ArgumentParser(description="Fashion-MNIST with a small conv net")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--gamma", type=float, default=0.5)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    train_loader = make_loader(data.train_images, data.train_labels, batch_size=64, shuffle=True)
    test_loader = make_loader(data.test_images, data.test_labels, batch_size=250)

    model = Net()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    for epoch in range(1, args.epochs + 1):
        train(model, train_loader, criterion, optimizer, epoch)
        accuracy = test(model, test_loader, criterion)
        scheduler.step()
    print(f"test accuracy: {accuracy:.4f}")


if __name__ == "__main__":
    main()
