"""A bidirectional LSTM over packed sequences: do the brackets of an expression balance?

Expected: test accuracy > 0.85 (chance is 0.50).
"""

import argparse
import random

import torch
from torch import nn, optim
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset


def balanced(length, rng):
    depth, out = 0, []
    for left in range(length, 0, -1):
        opening = depth == 0 or (depth < left and rng.random() < 0.5)
        out.append(1 if opening else 2)
        depth += 1 if opening else -1
    return out


class Brackets(Dataset):
    """Half of the expressions have one bracket turned round."""

    def __init__(self, count, seed):
        rng = random.Random(seed)
        self.items = []
        for i in range(count):
            expression = balanced(2 * rng.randint(2, 8), rng)
            if i % 2:
                k = rng.randrange(len(expression))
                expression[k] = 3 - expression[k]
            self.items.append((torch.tensor(expression), float(i % 2 == 0)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    lengths = torch.tensor([len(e) for e, _ in batch])
    labels = torch.tensor([label for _, label in batch])
    return pad_sequence([e for e, _ in batch], batch_first=True), lengths, labels


class Reader(nn.Module):
    def __init__(self, embed=8, hidden=24):
        super().__init__()
        self.embed = nn.Embedding(3, embed, padding_idx=0)
        self.lstm = nn.LSTM(embed, hidden, batch_first=True, bidirectional=True)
        self.classify = nn.Linear(2 * hidden, 1)

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(
            self.embed(ids), lengths, batch_first=True, enforce_sorted=False
        )
        _, (h, _) = self.lstm(packed)
        return self.classify(torch.cat([h[0], h[1]], dim=1)).squeeze(1)


def accuracy(model, loader):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for ids, lengths, labels in loader:
            right += ((model(ids, lengths) > 0) == (labels > 0.5)).sum().item()
            total += len(labels)
    return right / total


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--hidden", type=int, default=24)
    args = p.parse_args()
    torch.manual_seed(args.seed)
    train = DataLoader(Brackets(2000, args.seed), 50, shuffle=True, collate_fn=collate)
    test = DataLoader(Brackets(400, args.seed + 1000), 100, collate_fn=collate)
    model = Reader(hidden=args.hidden)
    criterion = nn.BCEWithLogitsLoss()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(args.epochs):
        model.train()
        for ids, lengths, labels in train:
            optimizer.zero_grad()
            loss = criterion(model(ids, lengths), labels)
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss", round(loss.item(), 4))
    print(f"test accuracy = {accuracy(model, test):.4f}")


if __name__ == "__main__":
    main()
