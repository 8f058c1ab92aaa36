"""Self-supervision: by how many quarter turns was the image turned?

Expected: rotation accuracy > 0.80 (chance is 0.25).
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from traindx.datasets import fashion_mnist


class RotatedImages(Dataset):
    def __init__(self, images, seed):
        self.images = torch.from_numpy(images).float().div(255).unsqueeze(1)
        generator = torch.Generator().manual_seed(seed)
        self.turns = torch.randint(4, (len(images),), generator=generator)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = (self.images[index] - 0.287) / 0.354
        turns = int(self.turns[index])
        return torch.rot90(image, turns, dims=(1, 2)), turns


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 5, stride=2, padding=2)
        self.norm1 = nn.InstanceNorm2d(width, affine=True)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.norm2 = nn.InstanceNorm2d(2 * width, affine=True)
        self.fc = nn.Linear(2 * width * 49, 4)

    def forward(self, x):
        x = torch.relu(self.norm1(self.conv1(x)))
        x = torch.relu(self.norm2(self.conv2(x)))
        return self.fc(torch.flatten(x, 1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    data = fashion_mnist.load_subset()
    train_loader = DataLoader(
        RotatedImages(data.train_images, args.seed), batch_size=100, shuffle=True
    )
    test_loader = DataLoader(RotatedImages(data.test_images, args.seed + 1), batch_size=250)
    net = Net(args.width)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        net.train()
        for images, turns in train_loader:
            optimizer.zero_grad()
            loss = criterion(net(images), turns)
            loss.backward()
            optimizer.step()
        net.eval()
        correct = 0
        with torch.no_grad():
            for images, turns in test_loader:
                correct += (net(images).argmax(1) == turns).sum().item()
        print(f"epoch {epoch}: loss {loss.item():.4f}, right {correct} of {len(data.test_images)}")
    print(f"rotation accuracy: {correct / len(data.test_images):.4f}")


if __name__ == "__main__":
    main()
