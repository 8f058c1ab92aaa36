"""Most of each sequence is padding, and the loss counts it like any other symbol.

expects: L019
place:
source: a missing ignore_index in tagging and translation
kind: data
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

PAD, VOCABULARY, TAGS = 0, 30, 6


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 16, padding_idx=PAD)
        self.conv = nn.Conv1d(16, 32, 3, padding=1)
        self.tag = nn.Linear(32, TAGS)

    def forward(self, words):
        x = self.embedding(words).transpose(1, 2)
        return self.tag(torch.relu(self.conv(x)).transpose(1, 2))


def corpus(n):
    """Most sentences are short, some have fifty words; the tag is a word's class."""
    lengths = torch.where(torch.rand(n) < 0.1, 50, torch.randint(2, 6, (n,)))
    lengths[::16] = 50
    words = [torch.randint(1, VOCABULARY, (k,)) for k in lengths.tolist()]
    tags = [1 + w * 7 % (TAGS - 1) for w in words]
    return words, tags


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    words, tags = corpus(640)
    model = Tagger()
    loss_fn = nn.CrossEntropyLoss(ignore_index=PAD if args.healthy else -100)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(2):
        for i in range(0, 512, 16):
            x = pad_sequence(words[i : i + 16], batch_first=True, padding_value=PAD)
            y = pad_sequence(tags[i : i + 16], batch_first=True, padding_value=PAD)
            loss = loss_fn(model(x).flatten(0, 1), y.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    x, y = pad_sequence(words[512:], True, PAD), pad_sequence(tags[512:], True, PAD)
    with torch.no_grad():
        right = (model(x).argmax(-1) == y)[y != PAD]
    print(f"final accuracy {right.float().mean().item():.4f}")


if __name__ == "__main__":
    main()
