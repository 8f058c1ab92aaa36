"""A text scorer is used as it was trained: half of its features are dropped while it is scored.

expects: E001
place:
source: a predict() that wraps the call in no_grad() and nothing else
kind: mode
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn

WORDS, TOPICS = 400, 5


class Scorer(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.embed = nn.EmbeddingBag(WORDS, dim, mode="mean")
        self.drop = nn.Dropout(0.5)
        self.hidden = nn.Linear(dim, 64)
        self.out = nn.Linear(64, TOPICS)

    def forward(self, words):
        hidden = self.drop(torch.relu(self.hidden(self.drop(self.embed(words)))))
        return self.out(hidden)

    @torch.no_grad()
    def predict(self, words, deterministic):
        was_training = self.training
        self.train(not deterministic)
        topics = self(words).argmax(1)
        self.train(was_training)
        return topics


def texts(count, frequencies):
    topics = torch.randint(TOPICS, (count,))
    return torch.multinomial(frequencies[topics], 30, replacement=True), topics


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    frequencies = torch.softmax(0.45 * torch.randn(TOPICS, WORDS), dim=1)
    train_words, train_topics = texts(4000, frequencies)
    test_words, test_topics = texts(2000, frequencies)

    scorer = Scorer()
    optimizer = torch.optim.Adam(scorer.parameters(), lr=1e-2)
    for step in range(200):
        batch = torch.randint(len(train_words), (100,))
        loss = nn.functional.cross_entropy(scorer(train_words[batch]), train_topics[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            right = scorer.predict(test_words, deterministic=args.healthy) == test_topics
            print(f"step {step + 1} loss {loss.item():.4f} right {right.float().mean():.4f}")
    print(f"final accuracy {right.float().mean().item():.4f}")


if __name__ == "__main__":
    main()
