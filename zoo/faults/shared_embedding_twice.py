"""Two towers share an embedding, and the optimizer of each of them steps it.

expects: O011
place:
source: parameters listed module by module, in which what is shared comes twice
kind: optimizer
shows: provable: both optimizers hold the embedding and step it with one gradient, at twice the rate
"""

import argparse

import torch
from torch import nn


class Tower(nn.Module):
    def __init__(self, embedding):
        super().__init__()
        self.embedding = embedding
        self.project = nn.Linear(16, 12)

    def forward(self, words):
        return self.project(self.embedding(words).mean(1))


def questions(n, topics):
    """A question and its answer have words of one topic."""
    topic = torch.randint(6, (n,))
    ask = topics[topic][:, torch.randint(10, (5,))]
    answer = topics[topic][:, torch.randint(10, (5,))]
    return ask, answer, topic


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    topics = torch.randperm(60).view(6, 10)
    shared = nn.Embedding(60, 16)
    asking, answering = Tower(shared), Tower(shared)
    of_answers = answering.project if args.healthy else answering
    optimizers = [
        torch.optim.Adam(asking.parameters(), lr=2e-3),
        torch.optim.Adam(of_answers.parameters(), lr=2e-3),
    ]
    for step in range(150):
        ask, answer, topic = questions(64, topics)
        same = (topic[:, None] == topic[None]).float()
        scores = asking(ask) @ answering(answer).T
        loss = nn.functional.binary_cross_entropy_with_logits(scores, same)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    ask, answer, topic = questions(600, topics)
    with torch.no_grad():
        found = topic[(asking(ask) @ answering(answer).T).argmax(1)]
    print(f"final accuracy {(found == topic).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
