"""Encoder and decoder have an optimizer each, and only the encoder's takes a step.

expects: O014
place: decoder
source: two optimizers and one line forgotten, as in sequence-to-sequence tutorials
kind: optimizer
shows: final loss lower
"""

import argparse

import torch
from torch import nn, optim

SYMBOLS, LENGTH = 8, 5


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS, width)
        self.gru = nn.GRU(width, width, batch_first=True)

    def forward(self, x):
        return self.gru(self.embed(x))[1]


class Decoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS + 1, width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, SYMBOLS)

    def forward(self, previous, hidden):
        return self.out(self.gru(self.embed(previous), hidden)[0])


def translate_loss(encoder, decoder, n):
    source = torch.randint(SYMBOLS, (n, LENGTH))
    target = (source.flip(1) + 3) % SYMBOLS
    start = torch.full((n, 1), SYMBOLS)
    scores = decoder(torch.cat((start, target[:, :-1]), dim=1), encoder(source))
    return nn.functional.cross_entropy(scores.flatten(0, 1), target.flatten())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    encoder, decoder = Encoder(32), Decoder(32)
    encoder_optimizer = optim.Adam(encoder.parameters(), lr=5e-3)
    decoder_optimizer = optim.Adam(decoder.parameters(), lr=5e-3)
    for step in range(200):
        encoder_optimizer.zero_grad()
        decoder_optimizer.zero_grad()
        loss = translate_loss(encoder, decoder, 64)
        loss.backward()
        encoder_optimizer.step()
        if args.healthy:
            decoder_optimizer.step()
        if step % 40 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    with torch.no_grad():
        print(f"final loss {translate_loss(encoder, decoder, 1000).item():.4f}")


if __name__ == "__main__":
    main()
