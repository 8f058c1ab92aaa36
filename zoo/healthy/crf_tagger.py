"""A bidirectional LSTM with a conditional random field tags sentences of several lengths.

Expected: token accuracy > 0.60 (chance is 0.25).
"""

import argparse

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

WORDS, TAGS, LENGTH = 40, 4, 12


def sentences(n, emits, follows):
    words = torch.randint(1, WORDS, (n, LENGTH))
    tags = torch.zeros(n, LENGTH, dtype=torch.long)
    for t in range(LENGTH):
        scores = emits[words[:, t]] + (follows[tags[:, t - 1]] if t else 0)
        tags[:, t] = torch.distributions.Categorical(logits=3 * scores).sample()
    mask = torch.arange(LENGTH) < torch.randint(5, LENGTH + 1, (n, 1))
    return words * mask, tags * mask, mask


class CRF(nn.Module):
    def __init__(self, tags):
        super().__init__()
        self.start = nn.Parameter(torch.empty(tags).uniform_(-0.1, 0.1))
        self.follows = nn.Parameter(torch.empty(tags, tags).uniform_(-0.1, 0.1))

    def forward(self, emissions, tags, mask):
        """Mean negative log-likelihood of the tags."""
        score = self.start[tags[:, 0]] + emissions[:, 0].gather(1, tags[:, :1])[:, 0]
        total = self.start + emissions[:, 0]
        for t in range(1, emissions.size(1)):
            now, here = emissions[:, t], mask[:, t]
            step = self.follows[tags[:, t - 1], tags[:, t]] + now.gather(1, tags[:, t, None])[:, 0]
            score = score + step * here
            longer = torch.logsumexp(total[:, :, None] + self.follows, dim=1) + now
            total = torch.where(here[:, None], longer, total)
        return (torch.logsumexp(total, dim=1) - score).mean()

    @torch.no_grad()
    def decode(self, emissions, mask):
        best, back = self.start + emissions[:, 0], []
        stay = torch.arange(best.size(1)).expand_as(best)
        for t in range(1, emissions.size(1)):
            here = mask[:, t, None]
            value, last = (best[:, :, None] + self.follows).max(dim=1)
            best = torch.where(here, value + emissions[:, t], best)
            back.append(torch.where(here, last, stay))
        path = [best.argmax(1)]
        for last in reversed(back):
            path.append(last.gather(1, path[-1][:, None])[:, 0])
        return torch.stack(path[::-1], dim=1)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 32, padding_idx=0)
        self.lstm = nn.LSTM(32, 32, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.3)
        self.out = nn.Linear(64, TAGS)
        self.crf = CRF(TAGS)

    def emissions(self, words, mask):
        packed = pack_padded_sequence(
            self.embedding(words), mask.sum(1), batch_first=True, enforce_sorted=False
        )
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=LENGTH)
        return self.out(self.dropout(states))

    def forward(self, words, tags, mask):
        return self.crf(self.emissions(words, mask), tags, mask)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    emits, follows = torch.randn(WORDS, TAGS), torch.randn(TAGS, TAGS)
    words, tags, mask = sentences(800, emits, follows)
    test_words, test_tags, test_mask = sentences(200, emits, follows)
    net = Tagger()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for epoch in range(4):
        net.train()
        for idx in torch.randperm(len(words)).split(32):
            optimizer.zero_grad()
            loss = net(words[idx], tags[idx], mask[idx])
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            optimizer.step()
        net.eval()
        with torch.no_grad():
            found = net.crf.decode(net.emissions(test_words, test_mask), test_mask)
        accuracy = (found == test_tags)[test_mask].float().mean().item()
        print(f"epoch {epoch}: loss {loss.item():.4f}, accuracy {accuracy:.3f}")
    print(f"token accuracy: {accuracy:.4f}")


if __name__ == "__main__":
    main()
