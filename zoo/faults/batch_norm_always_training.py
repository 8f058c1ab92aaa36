"""A BatchNorm of one's own calls F.batch_norm with training=True, in evaluation as well.

expects: E010
place: norm
source: a functional call whose flag is a constant, while modules have a flag of their own
kind: mode
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


class FusedNormReLU(nn.Module):
    def __init__(self, channels, follow_mode):
        super().__init__()
        self.follow_mode = follow_mode
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(self, x):
        training = self.training if self.follow_mode else True
        stats = (self.running_mean, self.running_var, self.weight, self.bias)
        return F.relu(F.batch_norm(x, *stats, training=training, momentum=0.1))


class Net(nn.Module):
    def __init__(self, follow_mode):
        super().__init__()
        self.conv = nn.Conv2d(1, 12, 4, stride=4, bias=False)
        self.norm = FusedNormReLU(12, follow_mode)
        self.head = nn.Linear(12 * 49, 10)

    def forward(self, x):
        return self.head(self.norm(self.conv(x)).flatten(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    images = torch.from_numpy(data.train_images).float()[:, None].sub(73.2).div(90.2)
    labels = torch.from_numpy(data.train_labels).long()
    order = torch.from_numpy(data.test_labels).long().argsort()
    test_images = torch.from_numpy(data.test_images).float()[order, None].sub(73.2).div(90.2)
    test_set = TensorDataset(test_images, torch.from_numpy(data.test_labels).long()[order])

    net = Net(follow_mode=args.healthy)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(2):
        net.train()
        for batch in torch.randperm(len(images)).split(64):
            loss = F.cross_entropy(net(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            right = sum(
                (net(x).argmax(1) == y).sum().item() for x, y in DataLoader(test_set, batch_size=4)
            )
        print(f"epoch {epoch + 1} loss {loss.item():.4f} right {right}")
    print(f"final accuracy {right / len(test_set):.4f}")


if __name__ == "__main__":
    main()
