"""Model and training loop both apply the sigmoid, so no probability falls below a half.

expects: L003
place:
source: an activation moved into the model and not out of the loop
kind: loss-pairing
shows: final loss lower
"""

import argparse

import torch
import torch.nn as nn


class Detector(nn.Module):
    def __init__(self, output):
        super().__init__()
        self.conv = nn.Conv1d(1, 16, 7, padding=3)
        self.fc = nn.Linear(16, 1)
        self.output = output

    def forward(self, signal):
        features = self.conv(signal).relu().amax(-1)
        return self.output(self.fc(features))


def signals(n):
    """Noise, half of it with a beat in it."""
    x = 0.5 * torch.randn(n, 1, 60)
    beats = torch.rand(n) < 0.5
    shape = torch.tensor([0.5, 1.5, 3.0, -2.0, -1.0])
    for i in beats.nonzero().flatten().tolist():
        at = int(torch.randint(0, 55, ()))
        x[i, 0, at : at + 5] += shape
    return x, beats.float().unsqueeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x, y = signals(1000)
    x_test, y_test = signals(300)
    net = Detector(nn.Identity() if args.healthy else nn.Sigmoid())
    criterion = nn.BCELoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(4):
        for idx in torch.randperm(len(x)).split(25):
            optimizer.zero_grad()
            probability = torch.sigmoid(net(x[idx]))
            loss = criterion(probability, y[idx])
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss", round(loss.item(), 4))
    with torch.no_grad():
        print("final loss", criterion(torch.sigmoid(net(x_test)), y_test).item())


if __name__ == "__main__":
    main()
