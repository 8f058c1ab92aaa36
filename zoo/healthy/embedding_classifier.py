"""Tells the topic of a text from the sum of its word vectors, with sparse gradients.

The texts are drawn from four topics, each of which favours its own words.

Expected: test accuracy > 0.80 (chance is 0.25).
"""

import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

VOCABULARY = 2000
TOPICS = 4


class TextClassifier(nn.Module):
    def __init__(self, embed_dim=32):
        super().__init__()
        self.embedding = nn.EmbeddingBag(VOCABULARY, embed_dim, mode="mean", sparse=True)
        self.fc = nn.Linear(embed_dim, TOPICS)

    def forward(self, words, offsets):
        return self.fc(self.embedding(words, offsets))


def write_texts(word_frequencies, count):
    topics = torch.randint(TOPICS, (count,)).tolist()
    lengths = torch.randint(20, 60, (count,)).tolist()
    return [
        (topic, torch.multinomial(word_frequencies[topic], length, replacement=True))
        for topic, length in zip(topics, lengths, strict=True)
    ]


def collate(batch):
    topics = torch.tensor([topic for topic, _ in batch])
    lengths = torch.tensor([0] + [len(words) for _, words in batch[:-1]])
    return topics, torch.cat([words for _, words in batch]), lengths.cumsum(0)


def evaluate(model, loader):
    model.eval()
    correct, total = 0, 0
    with torch.no_grad():
        for topics, words, offsets in loader:
            correct += (model(words, offsets).argmax(1) == topics).sum().item()
            total += topics.size(0)
    return correct / total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    word_frequencies = torch.softmax(0.5 * torch.randn(TOPICS, VOCABULARY), dim=1)
    train_loader = DataLoader(
        write_texts(word_frequencies, 3200), batch_size=64, shuffle=True, collate_fn=collate
    )
    test_loader = DataLoader(write_texts(word_frequencies, 400), batch_size=100, collate_fn=collate)

    model = TextClassifier()
    criterion = nn.CrossEntropyLoss()
    sparse_optimizer = torch.optim.SparseAdam(model.embedding.parameters(), lr=0.02)
    dense_optimizer = torch.optim.Adam(model.fc.parameters(), lr=0.02)

    for epoch in range(1, args.epochs + 1):
        model.train()
        for topics, words, offsets in train_loader:
            sparse_optimizer.zero_grad()
            dense_optimizer.zero_grad()
            loss = criterion(model(words, offsets), topics)
            loss.backward()
            sparse_optimizer.step()
            dense_optimizer.step()
        accuracy = evaluate(model, test_loader)
        print(f"| epoch {epoch} | loss {loss.item():.3f} | accuracy {accuracy:.3f} |")
    print(f"test accuracy {evaluate(model, test_loader):.4f}")


if __name__ == "__main__":
    main()
