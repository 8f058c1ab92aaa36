"""A GRU encoder and decoder that learn to reverse a word, with teacher forcing.

The decoder attends to the encoder; at test time it reads its own words.

Expected: words right > 0.70 (a random guess is never right).
"""

import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

LETTERS, LENGTH = 10, 6
SOS = LETTERS


class Encoder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.embedding = nn.Embedding(LETTERS, hidden)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)

    def forward(self, words):
        return self.gru(self.embedding(words))


class AttnDecoder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.embedding = nn.Embedding(LETTERS + 1, hidden)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)
        self.query = nn.Linear(hidden, hidden, bias=False)
        self.out = nn.Linear(2 * hidden, LETTERS)

    def step(self, letter, state, memory):
        output, state = self.gru(self.embedding(letter), state)
        scores = self.query(output) @ memory.transpose(1, 2)
        context = F.softmax(scores / memory.shape[-1] ** 0.5, dim=-1) @ memory
        return self.out(torch.cat([output, context], dim=-1)), state

    def forward(self, memory, state, target=None):
        letter = torch.full((len(memory), 1), SOS)
        logits = []
        for t in range(LENGTH):
            scores, state = self.step(letter, state, memory)
            logits.append(scores)
            letter = scores.argmax(-1) if target is None else target[:, t : t + 1]
        return torch.cat(logits, dim=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=220)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--teacher-forcing-ratio", type=float, default=0.8)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    random.seed(args.seed)

    encoder, decoder = Encoder(args.width), AttnDecoder(args.width)
    encoder_optimizer = torch.optim.Adam(encoder.parameters(), lr=5e-3)
    decoder_optimizer = torch.optim.Adam(decoder.parameters(), lr=5e-3)
    criterion = nn.CrossEntropyLoss()

    for step in range(1, args.steps + 1):
        words = torch.randint(LETTERS, (64, LENGTH))
        target = words.flip(1)
        encoder_optimizer.zero_grad()
        decoder_optimizer.zero_grad()
        memory, state = encoder(words)
        forced = random.random() < args.teacher_forcing_ratio
        logits = decoder(memory, state, target if forced else None)
        loss = criterion(logits.reshape(-1, LETTERS), target.reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_([*encoder.parameters(), *decoder.parameters()], 1.0)
        encoder_optimizer.step()
        decoder_optimizer.step()
        if step % 55 == 0:
            print(f"({step} {step * 100 // args.steps}%) {loss.item():.4f}")

    words = torch.randint(LETTERS, (500, LENGTH))
    with torch.no_grad():
        answer = decoder(*encoder(words)).argmax(-1)
    print(f"words right: {(answer == words.flip(1)).all(1).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
