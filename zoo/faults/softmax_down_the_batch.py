"""The log-softmax is taken over the samples of a batch, so that the samples compete.

expects: L003
place:
source: dim=0 taken for "the first axis that matters"; wrong axes are frequent in public collections
kind: loss-pairing
shows: final accuracy higher
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


class DigitNet(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
        self.log_softmax = nn.LogSoftmax(dim=dim)

    def forward(self, pixels):
        return self.log_softmax(self.body(pixels))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    digits = load_digits()
    pixels = torch.tensor(digits.data, dtype=torch.float32) / 8 - 1
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(labels))
    train, test = order[:1400], order[1400:]

    net = DigitNet(dim=1 if args.healthy else 0)
    nll = nn.NLLLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(4):
        for batch in train[torch.randperm(len(train))].split(50):
            optimizer.zero_grad()
            loss = nll(net(pixels[batch]), labels[batch])
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    net.eval()
    with torch.no_grad():
        # one digit after the other, as the application asks for them
        answers = torch.cat([net(row[None]).argmax(1) for row in pixels[test]])
    print(f"final accuracy {(answers == labels[test]).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
