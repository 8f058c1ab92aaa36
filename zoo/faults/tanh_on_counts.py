"""The network counts dots of up to a dozen, and ends in a tanh, which ends at one.

expects: L003
place:
source: an output range that was right for the images of another project
kind: loss-pairing
shows: final mean error lower
"""

import argparse

import torch
import torch.nn as nn


def draw(n):
    """Images with some bright dots, and how many there are."""
    counts = torch.randint(0, 13, (n,))
    images = 0.1 * torch.randn(n, 1, 12, 12)
    for image, count in zip(images, counts.tolist(), strict=True):
        where = torch.randperm(144)[:count]
        image.view(-1)[where] += 2
    return images, counts.float().unsqueeze(1)


class Counter(nn.Module):
    def __init__(self, output):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.fc = nn.Linear(8 * 36, 1)
        self.pool = nn.AvgPool2d(2)
        self.output = output

    def forward(self, x):
        x = self.pool(torch.relu(self.conv(x)))
        return self.output(self.fc(torch.flatten(x, 1)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    images, counts = draw(1200)
    held_images, held_counts = draw(300)
    net = Counter(nn.Identity() if args.healthy else nn.Tanh())
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    criterion = nn.MSELoss()
    for epoch in range(8):
        running = []
        for batch in torch.randperm(1200).split(40):
            optimizer.zero_grad()
            loss = criterion(net(images[batch]), counts[batch])
            loss.backward()
            optimizer.step()
            running.append(loss.item())
        print(f"epoch {epoch + 1}: {sum(running) / len(running):.3f}")
    with torch.no_grad():
        error = (net(held_images) - held_counts).abs().mean().item()
    print(f"final mean error {error:.4f}")


if __name__ == "__main__":
    main()
