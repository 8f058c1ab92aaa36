"""A reshape is meant to bring time to the front, and mixes the samples of the batch.

expects: E007
place:
source: a recurrent layer that wants time first, and a reshape that fits the sizes
kind: architecture
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, time_first):
        super().__init__()
        self.embed = nn.Embedding(20, 24)
        self.gru = nn.GRU(24, 48)
        self.out = nn.Linear(48, 20)
        self.time_first = time_first

    def forward(self, words):
        states, _ = self.gru(self.time_first(self.embed(words)))
        return self.out(states[-1])


def by_reshape(x):
    batch, time, width = x.shape
    return x.reshape(time, batch, width)


def by_transpose(x):
    return x.transpose(0, 1).contiguous()


def lists(n):
    """The largest number of a list."""
    words = torch.randint(20, (n, 6))
    return words, words.amax(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    model = Decoder(by_transpose if args.healthy else by_reshape)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(250):
        words, largest = lists(48)
        optimizer.zero_grad()
        loss = criterion(model(words), largest)
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    words, largest = lists(1000)
    with torch.no_grad():
        print(f"final accuracy {(model(words).argmax(1) == largest).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
