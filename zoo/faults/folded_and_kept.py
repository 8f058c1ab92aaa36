"""BatchNorm is folded into the convolution before it and kept as well, so it is applied twice.

expects: E006
place:
source: deployment scripts that fold, whose user forgets to put nn.Identity in its place
kind: checkpoint
shows: final accuracy higher
"""

import argparse
import copy

import torch
from torch import nn
from torch.nn import functional as F

from traindx.datasets import fashion_mnist


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, stride=2, padding=1)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.bn2 = nn.BatchNorm2d(16)
        self.fc = nn.Linear(16 * 49, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        return self.fc(x.flatten(1))


@torch.no_grad()
def fold(net, remove):
    net = copy.deepcopy(net)
    for i in (1, 2):
        conv, bn = getattr(net, f"conv{i}"), getattr(net, f"bn{i}")
        scale = bn.weight / (bn.running_var + bn.eps).sqrt()
        conv.weight.mul_(scale[:, None, None, None])
        conv.bias.copy_((conv.bias - bn.running_mean) * scale + bn.bias)
        if remove:
            setattr(net, f"bn{i}", nn.Identity())
    return net


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    images = torch.from_numpy(data.train_images).float()[:, None].sub(73.2).div(90.2)
    labels = torch.from_numpy(data.train_labels).long()
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for step in range(120):
        batch = torch.randint(len(images), (64,))
        loss = F.cross_entropy(net(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 39:
            print(f"step {step + 1} loss {loss.item():.4f}")

    net.eval()
    fast = fold(net, remove=args.healthy)
    test_images = torch.from_numpy(data.test_images).float()[:, None].sub(73.2).div(90.2)
    with torch.no_grad():
        right = fast(test_images).argmax(1) == torch.from_numpy(data.test_labels)
    print(f"final accuracy {right.float().mean().item():.4f}")


if __name__ == "__main__":
    main()
