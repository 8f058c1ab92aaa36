"""Keeps an exponential moving average of the weights and evaluates that.

Expected: ema accuracy > 0.76 (chance is 0.10).
"""

import argparse
import copy

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


class ModelEMA:
    def __init__(self, model, decay=0.98):
        self.module = copy.deepcopy(model).eval()
        self.module.requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for ema_v, model_v in zip(
            self.module.state_dict().values(), model.state_dict().values(), strict=True
        ):
            if ema_v.is_floating_point():
                ema_v.lerp_(model_v, 1 - self.decay)
            else:
                ema_v.copy_(model_v)


def create_model(width):
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, width),
        nn.BatchNorm1d(width),
        nn.SiLU(),
        nn.Dropout(0.1),
        nn.Linear(width, width),
        nn.BatchNorm1d(width),
        nn.SiLU(),
        nn.Linear(width, 10),
    )


def validate(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
    return correct / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--ema-decay", type=float, default=0.98)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()

    def loader(images, labels, **kw):
        images = torch.from_numpy(images).float().sub_(73).div_(90)
        return DataLoader(TensorDataset(images, torch.from_numpy(labels).long()), **kw)

    train_loader = loader(
        data.train_images, data.train_labels, batch_size=80, shuffle=True, drop_last=True
    )
    test_loader = loader(data.test_images, data.test_labels, batch_size=500)
    model = create_model(args.width)
    model_ema = ModelEMA(model, args.ema_decay)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            model_ema.update(model)
        print(
            f"epoch {epoch}: loss {loss.item():.4f}, raw {validate(model, test_loader):.4f}, "
            f"ema {validate(model_ema.module, test_loader):.4f}"
        )
    print(f"ema accuracy: {validate(model_ema.module, test_loader):.4f}")


if __name__ == "__main__":
    main()
