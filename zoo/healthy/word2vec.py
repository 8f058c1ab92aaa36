"""Word vectors by skip-gram with negative sampling, on sentences from six topics.

Expected: neighbours of the same topic > 0.70 (chance is 0.17).
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

TOPICS, WORDS = 6, 20
VOCAB = TOPICS * WORDS


def corpus(sentences, length=8):
    topic = torch.randint(TOPICS, (sentences, 1))
    word = (torch.rand(sentences, length).square() * WORDS).long() + topic * WORDS
    stray = torch.rand(sentences, length) < 0.2
    return torch.where(stray, torch.randint(VOCAB, word.shape), word)


class SkipGram(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.u_embeddings = nn.Embedding(VOCAB, dim, sparse=True)
        self.v_embeddings = nn.Embedding(VOCAB, dim, sparse=True)
        nn.init.uniform_(self.u_embeddings.weight, -0.5, 0.5)
        nn.init.zeros_(self.v_embeddings.weight)

    def forward(self, pos_u, pos_v, neg_v):
        u = self.u_embeddings(pos_u)
        score = (u * self.v_embeddings(pos_v)).sum(-1)
        neg_score = torch.bmm(self.v_embeddings(neg_v), u.unsqueeze(2)).squeeze(2)
        return -(F.logsigmoid(score) + F.logsigmoid(-neg_score).sum(1)).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--negatives", type=int, default=5)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    text = corpus(3000)
    noise = torch.bincount(text.flatten(), minlength=VOCAB).float() ** 0.75
    model = SkipGram(args.dim)
    optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=0.02)
    for step in range(args.steps):
        rows = torch.randint(len(text), (128,))
        i = torch.randint(1, 7, (128,))
        j = i + torch.where(torch.rand(128) < 0.5, 1, -1)
        neg = torch.multinomial(noise, 128 * args.negatives, replacement=True)
        loss = model(text[rows, i], text[rows, j], neg.view(128, -1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    with torch.no_grad():
        vectors = F.normalize(model.u_embeddings.weight, dim=1)
    nearest = (vectors @ vectors.T).fill_diagonal_(-1).topk(5).indices
    same = nearest // WORDS == (torch.arange(VOCAB) // WORDS)[:, None]
    print(f"neighbours of the same topic: {same.float().mean().item():.4f}")


if __name__ == "__main__":
    main()
