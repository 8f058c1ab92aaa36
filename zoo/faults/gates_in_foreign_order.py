"""The gates of a recurrent layer are loaded in the order of another framework.

expects: E014
place: gru
source: update and reset gate, which frameworks keep in different orders
kind: checkpoint
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn


class Parity(nn.Module):
    """Says for each bit whether the number of ones so far is odd."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 24, batch_first=True)
        self.out = nn.Linear(24, 1)

    def forward(self, bits):
        return self.out(self.gru(bits)[0]).squeeze(-1)


def bits(n, length=8):
    """A switch: a one turns the light on, a minus one off, a zero leaves it."""
    x = torch.randint(-1, 2, (n, length)).float()
    light = torch.zeros(n)
    states = []
    for column in x.unbind(1):
        light = torch.where(column == 0, light, (column > 0).float())
        states.append(light)
    return x.unsqueeze(-1), torch.stack(states, dim=1)


def exchange(value):
    """From update, reset, new to reset, update, new, or back."""
    update, reset, new = value.chunk(3)
    return torch.cat((reset, update, new))


def fit(model, steps, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for step in range(steps):
        x, y = bits(64)
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 60 == 0:
            print(f"step {step} loss {loss.item():.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    original = Parity()
    fit(original, 120, 1e-2)
    file = {  # as the other framework writes it
        name: exchange(value) if "gru" in name else value
        for name, value in original.state_dict().items()
    }
    model = Parity()
    if args.healthy:
        file = {name: exchange(v) if "gru" in name else v for name, v in file.items()}
    model.load_state_dict(file)
    fit(model, 40, 1e-5)
    x, y = bits(1000)
    with torch.no_grad():
        print(f"final accuracy {((model(x) > 0) == (y > 0.5)).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
