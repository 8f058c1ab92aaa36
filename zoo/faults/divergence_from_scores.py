"""The teacher's raw scores are the target of a divergence that expects its probabilities.

expects: L003
place:
source: a softmax forgotten on one of the two sides of a distillation loss
kind: loss-pairing
shows: final divergence lower
"""

import argparse

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, vocabulary, width, tags):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.tags = nn.Linear(width, tags)

    def forward(self, tokens):
        return self.tags(self.gru(self.embedding(tokens))[0])


def true_divergence(student_scores, teacher_scores):
    p = teacher_scores.softmax(-1)
    return (p * (teacher_scores.log_softmax(-1) - student_scores.log_softmax(-1))).sum(-1).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    teacher, student = Tagger(20, 32, 6), Tagger(20, 16, 6)
    nn.init.normal_(teacher.tags.weight, std=0.8)
    kl = nn.KLDivLoss(reduction="batchmean")
    optimizer = torch.optim.Adam(student.parameters(), lr=0.01)
    for step in range(100):
        tokens = torch.randint(20, (16, 12))
        with torch.no_grad():
            target = teacher(tokens).flatten(0, 1)
            target = target.softmax(-1) if args.healthy else target
        loss = kl(student(tokens).flatten(0, 1).log_softmax(-1), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 24:
            print(f"step {step + 1} loss {loss.item():.3f}")
    tokens = torch.randint(20, (64, 12))
    with torch.no_grad():
        print(f"final divergence {true_divergence(student(tokens), teacher(tokens)).item():.4f}")


if __name__ == "__main__":
    main()
