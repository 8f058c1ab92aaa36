"""Only named_parameters() are saved, so the loaded model evaluates with untouched statistics.

expects: E006
place:
source: a save function that lists parameters, and strict=False to silence what is missing
kind: checkpoint
shows: final accuracy higher
"""

import argparse
import io

import torch
from torch import nn

from traindx.datasets import fashion_mnist


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 12, 5, stride=3)
        self.norm = nn.BatchNorm2d(12)
        self.hidden = nn.Linear(12 * 64, 48)
        self.norm_hidden = nn.BatchNorm1d(48)
        self.out = nn.Linear(48, 10)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x))).flatten(1)
        return self.out(torch.relu(self.norm_hidden(self.hidden(x))))


def save(net, whole):
    file = io.BytesIO()
    torch.save(net.state_dict() if whole else dict(net.named_parameters()), file)
    return file.getvalue()


def load(saved):
    net = Net()
    net.load_state_dict(torch.load(io.BytesIO(saved), weights_only=True), strict=False)
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
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for step in range(150):
        batch = torch.randint(len(images), (64,))
        loss = nn.functional.cross_entropy(net(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")

    loaded = load(save(net, whole=args.healthy))
    loaded.eval()
    test_images = torch.from_numpy(data.test_images).float()[:, None].sub(73.2).div(90.2)
    with torch.no_grad():
        right = loaded(test_images).argmax(1) == torch.from_numpy(data.test_labels)
    print(f"final accuracy {right.float().mean().item():.4f}")


if __name__ == "__main__":
    main()
