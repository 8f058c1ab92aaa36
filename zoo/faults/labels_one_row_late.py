"""The file of labels has a header that was read as a row, so that each label is one row late.

expects: L005
place:
source: two files joined by line number
kind: data
shows: final accuracy higher
"""

import argparse
import csv
import io

import torch
from torch import nn
from torch.nn import functional as F


def write_tables(n):
    """What another program wrote: readings without, species with a header."""
    x = torch.randn(n, 6)
    species = (x @ torch.randn(6, 4)).argmax(1)
    rows = "\n".join(",".join(f"{v:.4f}" for v in row) for row in x.tolist())
    return rows, "species\n" + "\n".join(f"s{k}" for k in species.tolist())


def read_tables(readings, species, has_header):
    x = torch.tensor([[float(v) for v in row] for row in csv.reader(io.StringIO(readings))])
    names = [row[0] for row in csv.reader(io.StringIO(species))]
    if has_header:
        names = names[1:]
    names = names[: len(x)]
    known = ["s0", "s1", "s2", "s3"]
    return x, torch.tensor([known.index(name) if name in known else 0 for name in names])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    tables = write_tables(2000)
    x_true, y_true = read_tables(*tables, has_header=True)
    x, y = read_tables(*tables, has_header=args.healthy)
    net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(6):
        for rows in torch.randperm(1600).split(32):
            loss = F.cross_entropy(net(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        right = net(x_true[1600:]).argmax(1) == y_true[1600:]
    print(f"final accuracy {right.float().mean().item():.4f}")


if __name__ == "__main__":
    main()
