"""After each test only the head returns to train mode, and the backbone's BatchNorm stays behind.

expects: N004
place: backbone.1
source: an evaluation that restores the mode of the part it was written for
kind: mode
shows: provable: after the first test no batch updates the backbone's statistics any more
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 12, 3, stride=2, padding=1),
            nn.BatchNorm2d(12),
            nn.ReLU(),
            nn.Conv2d(12, 12, 3, stride=2, padding=1),
            nn.BatchNorm2d(12),
            nn.ReLU(),
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.2), nn.Linear(12 * 49, 10))

    def forward(self, x):
        return self.head(self.backbone(x))


class Trainer:
    def __init__(self, model, back_to_train):
        self.model = model
        self.back_to_train = back_to_train
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)

    def epoch(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.model(x), y)
            loss.backward()
            self.optimizer.step()
        return loss.item()

    def test(self, x, y):
        self.model.eval()
        with torch.no_grad():
            accuracy = (self.model(x).argmax(1) == y).float().mean().item()
        self.back_to_train.train()
        return accuracy


def load():
    data = fashion_mnist.load_subset()
    for images, labels in (
        (data.train_images, data.train_labels),
        (data.test_images, data.test_labels),
    ):
        yield torch.from_numpy(images).float()[:, None].sub(73.2).div(90.2)
        yield torch.from_numpy(labels).long()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x, y, test_x, test_y = load()
    loader = DataLoader(TensorDataset(x, y), batch_size=100, shuffle=True)
    model = Classifier()
    trainer = Trainer(model, model if args.healthy else model.head)
    for epoch in range(2):
        print(f"epoch {epoch} loss {trainer.epoch(loader):.4f} test {trainer.test(test_x, test_y)}")


if __name__ == "__main__":
    main()
