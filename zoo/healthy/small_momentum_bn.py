"""BatchNorm with a momentum of 0.02: slow averages, and a training long enough for them.

Expected: test accuracy > 0.74 (chance is 0.10).
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist

BN_MOMENTUM = 0.02


def conv_block(inp, out, stride):
    return nn.Sequential(
        nn.Conv2d(inp, out, 3, stride, 1, bias=False),
        nn.BatchNorm2d(out, momentum=BN_MOMENTUM),
        nn.ReLU6(inplace=True),
    )


def tensors(images, labels):
    x = torch.from_numpy(images)[:, None].float().sub(73).div(90)
    return TensorDataset(nn.functional.avg_pool2d(x, 2), torch.from_numpy(labels).long())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--width", type=int, default=8)
    ap.add_argument("--epochs", type=int, default=4)
    args = ap.parse_args()
    torch.manual_seed(args.seed)
    data = fashion_mnist.load_subset()
    train = DataLoader(
        tensors(data.train_images, data.train_labels), batch_size=60, shuffle=True, drop_last=True
    )
    test = DataLoader(tensors(data.test_images, data.test_labels), batch_size=500)
    w = args.width
    model = nn.Sequential(
        conv_block(1, w, 1),
        conv_block(w, 2 * w, 2),
        conv_block(2 * w, 2 * w, 2),
        nn.Flatten(),
        nn.Dropout(0.1),
        nn.Linear(2 * w * 16, 10),
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, alpha=0.9, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.6)
    for epoch in range(args.epochs):
        model.train()
        for x, y in train:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        scheduler.step()
        model.eval()
        with torch.no_grad():
            hits = sum((model(x).argmax(1) == y).sum().item() for x, y in test)
        accuracy = hits / len(test.dataset)
        print(f"epoch {epoch}: loss {loss.item():.4f}, accuracy {accuracy:.4f}")
    print(f"test accuracy: {accuracy:.4f}")


if __name__ == "__main__":
    main()
