"""A language model is trained to say the word that it has just read, since nothing is shifted.

expects: L017
place:
source: the shift by one of language models, done by some libraries inside and by others not at all
kind: data
shows: final accuracy higher
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

WORDS = 12


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 32)
        self.lstm = nn.LSTM(32, 48, batch_first=True)
        self.out = nn.Linear(48, WORDS)

    def forward(self, words):
        return self.out(self.lstm(self.embed(words))[0])


def sentences(n, table, length=17):
    """A chain in which each word prefers one successor."""
    words = [torch.randint(WORDS, (n,))]
    for _ in range(length - 1):
        likely = table[words[-1]]
        words.append(torch.where(torch.rand(n) < 0.85, likely, torch.randint(WORDS, (n,))))
    return torch.stack(words, dim=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    table = torch.randperm(WORDS)
    model = LanguageModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    first_target = 1 if args.healthy else 0
    for step in range(120):
        text = sentences(32, table)
        x, y = text[:, :-1], text[:, first_target : first_target + 16]
        loss = F.cross_entropy(model(x).reshape(-1, WORDS), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 29:
            print(f"step {step + 1} loss {loss.item():.4f}")
    text = sentences(300, table)
    with torch.no_grad():
        guess = model(text[:, :-1]).argmax(-1)
    print(f"final accuracy {(guess == text[:, 1:]).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
