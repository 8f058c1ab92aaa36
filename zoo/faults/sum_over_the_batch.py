"""The loss is summed over pixels and batch, with the learning rate of a mean.

expects: L011
place:
source: reduction="sum" taken over from a paper's formula
kind: loop
shows: final error lower
"""

import argparse

import torch
from torch import nn

from traindx.datasets import fashion_mnist


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(1, 8, 4, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(8, 1, 4, stride=2, padding=1)

    def forward(self, x):
        return self.up(torch.relu(self.down(x)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    clean = torch.from_numpy(data.train_images)[:, None].float().sub(73.2).div(90.2)
    held = torch.from_numpy(data.test_images)[:200, None].float().sub(73.2).div(90.2)
    model = Denoiser()
    criterion = nn.MSELoss(reduction="mean" if args.healthy else "sum")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(100):
        batch = clean[torch.randint(len(clean), (16,))]
        loss = criterion(model(batch + 0.3 * torch.randn_like(batch)), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 24:
            print(f"step {step + 1} loss {loss.item():.4g}")
    with torch.no_grad():
        error = (model(held + 0.3 * torch.randn_like(held)) - held).abs().mean().item()
    print(f"final error {error:.4f}")


if __name__ == "__main__":
    main()
