"""A port takes the two vectors of each LayerNorm in the wrong order: bias as weight, and back.

expects: E006
place:
source: scale and offset, gamma and beta, weight and bias: three orders of the same two arrays
kind: checkpoint
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class Reader(nn.Module):
    """Reads sequences of symbols and says which of two came first more often."""

    def __init__(self, symbols=6, dim=32):
        super().__init__()
        self.embed = nn.Embedding(symbols, dim)
        self.norm_in = nn.LayerNorm(dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.norm_out = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, 2)

    def forward(self, symbols):
        states, _ = self.rnn(self.norm_in(self.embed(symbols)))
        return self.head(self.norm_out(states[:, -1]))


def flat_list(model):
    return [value.clone() for value in model.state_dict().values()]


def from_flat_list(values, swap):
    model = Reader()
    names = list(model.state_dict())
    if swap:
        for i, name in enumerate(list(names)):
            if "norm" in name and name.endswith("weight"):
                names[i], names[i + 1] = names[i + 1], name
    model.load_state_dict(dict(zip(names, values, strict=True)))
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = torch.randint(6, (3000, 12))
    y = ((x == 0).sum(1) > (x == 1).sum(1)).long()
    reader = Reader()
    optimizer = torch.optim.Adam(reader.parameters(), lr=5e-3)
    for step in range(150):
        batch = torch.randint(2400, (64,))
        loss = F.cross_entropy(reader(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")

    ported = from_flat_list(flat_list(reader), swap=not args.healthy).eval()
    with torch.no_grad():
        right = (ported(x[2400:]).argmax(1) == y[2400:]).float().mean().item()
    print(f"final accuracy {right:.4f}")


if __name__ == "__main__":
    main()
