"""An LSTM that reads a Fashion-MNIST image row by row and then names it.

Expected: test accuracy > 0.65 (chance is 0.10).
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


class RowReader(nn.Module):
    def __init__(self, hidden_size=64, num_classes=10):
        super().__init__()
        self.lstm = nn.LSTM(input_size=28, hidden_size=hidden_size, batch_first=True)
        self.fc = nn.Linear(hidden_size, num_classes)

    def forward(self, rows):
        outputs, _ = self.lstm(rows)
        return self.fc(outputs[:, -1])


def as_rows(images, labels):
    rows = torch.from_numpy(images).float() / 127.5 - 1
    return TensorDataset(rows, torch.from_numpy(labels).long())


def load(seed):
    data = fashion_mnist.load_subset()
    train = as_rows(data.train_images, data.train_labels)
    test = as_rows(data.test_images, data.test_labels)
    shuffler = torch.Generator().manual_seed(seed)
    return DataLoader(train, 64, shuffle=True, generator=shuffler), DataLoader(test, 200)


def train_one_epoch(model, loader, loss_fn, optimizer):
    running_loss = 0.0
    for rows, labels in loader:
        loss = loss_fn(model(rows), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        running_loss += loss.item()
    return running_loss / len(loader)


def evaluate(model, loader):
    model.eval()
    with torch.inference_mode():
        hits = [(model(rows).argmax(-1) == labels).float().mean() for rows, labels in loader]
    model.train()
    return torch.stack(hits).mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    train_loader, test_loader = load(args.seed)
    model = RowReader()
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(args.epochs):
        loss = train_one_epoch(model, train_loader, loss_fn, optimizer)
        print(f"epoch {epoch}: train loss {loss:.3f}, val acc {evaluate(model, test_loader):.3f}")
    print(f"test accuracy {evaluate(model, test_loader):.4f}")


if __name__ == "__main__":
    main()
