"""A curriculum: short sums first, longer ones as the network masters them.

A GRU reads bits and says whether their number is odd, at every place.

Expected: accuracy at full length > 0.95 (chance is 0.50).
"""

import argparse

import torch
import torch.nn as nn

LONGEST = 16


class Parity(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, bits):
        return self.out(self.rnn(2 * bits[..., None] - 1)[0]).squeeze(-1)


def batch(n, length):
    bits = torch.randint(2, (n, length)).float()
    return bits, bits.cumsum(1) % 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hidden", type=int, default=24)
    parser.add_argument("--steps", type=int, default=500)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = Parity(args.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    length = 2
    for step in range(args.steps):
        bits, odd = batch(64, length)
        logits = model(bits)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, odd)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        right = ((logits > 0).float() == odd).float().mean().item()
        if right > 0.98 and length < LONGEST:
            length += 1
            print(f"step {step}: on to length {length}")
    model.eval()
    with torch.no_grad():
        bits, odd = batch(500, LONGEST)
        accuracy = ((model(bits) > 0).float() == odd).float().mean().item()
    print(f"accuracy at full length: {accuracy:.4f}")


if __name__ == "__main__":
    main()
