"""The validation loop never calls eval(), so its small batches are normalized by themselves.

expects: E001
place:
source: an evaluation copied out of a training loop, with no_grad() taken for evaluation mode
kind: mode
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()
        )
        self.body = nn.Sequential(
            nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()
        )
        self.head = nn.Linear(16 * 7 * 7, 10)

    def forward(self, x):
        return self.head(self.body(self.stem(x)).flatten(1))


def loaders():
    data = fashion_mnist.load_subset()
    parts = ((data.train_images, data.train_labels), (data.test_images, data.test_labels))
    train, test = (
        TensorDataset(torch.from_numpy(x).float()[:, None].sub(73.2).div(90.2), torch.from_numpy(y))
        for x, y in parts
    )
    # test images are shown one kind of clothing after another, as they lie on the disk
    test = TensorDataset(*(t[test.tensors[1].argsort()] for t in test.tensors))
    return DataLoader(train, batch_size=64, shuffle=True), DataLoader(test, batch_size=20)


def validate(model, loader, eval_mode):
    if eval_mode:
        model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
    model.train()
    return correct / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    train_loader, test_loader = loaders()
    model = ConvNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(2):
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y.long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        accuracy = validate(model, test_loader, eval_mode=args.healthy)
        print(f"epoch {epoch + 1} loss {loss.item():.4f} validation {accuracy:.4f}")
    print(f"final accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
