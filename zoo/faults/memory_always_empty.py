"""The state of a recurrent cell is set to zero for every word, so it remembers none.

expects: G003
place: cell
source: an initialization within the loop over time
kind: loop
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self, remembers):
        super().__init__()
        self.embed = nn.Embedding(10, 16)
        self.cell = nn.RNNCell(16, 32)
        self.answer = nn.Linear(32, 10)
        self.remembers = remembers

    def forward(self, digits):
        state = self.empty(digits)
        for digit in digits.unbind(1):
            if not self.remembers:
                state = self.empty(digits)
            state = self.cell(self.embed(digit), state)
        return self.answer(state)

    def empty(self, digits):
        return torch.zeros(len(digits), 32)


def sequences(n):
    """What is asked for is the digit before the last."""
    digits = torch.randint(10, (n, 5))
    return digits, digits[:, -2]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    model = Reader(remembers=args.healthy)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(250):
        digits, answer = sequences(64)
        loss = nn.functional.cross_entropy(model(digits), answer)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    digits, answer = sequences(1000)
    with torch.no_grad():
        print(f"final accuracy {(model(digits).argmax(1) == answer).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
