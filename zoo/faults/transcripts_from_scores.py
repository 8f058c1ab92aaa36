"""The alignment loss of a transcriber expects log-probabilities and is given raw scores.

expects: L003
place:
source: the CTC loss, which does not normalize and accepts whatever it is given
kind: loss-pairing
shows: final error rate lower
"""

import argparse

import torch
from torch import nn

LETTERS = 5  # besides the blank, which is 0


def utterances(n, frames=16, length=4):
    """Each letter sounds for some frames, at its own pitch, with noise between."""
    texts = torch.randint(1, LETTERS + 1, (n, length))
    sound = 0.3 * torch.randn(n, frames, LETTERS)
    for position in range(length):
        start = torch.randint(0, 2, (n,)) + 4 * position
        for shift in range(2):
            sound[torch.arange(n), start + shift, texts[:, position] - 1] += 2.0
    return sound, texts


def read(best):
    """Collapse repetitions, drop blanks."""
    text, last = [], 0
    for symbol in best.tolist():
        if symbol not in (0, last):
            text.append(symbol)
        last = symbol
    return text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    model = nn.Sequential(
        nn.Conv1d(LETTERS, 32, 3, padding=1), nn.ReLU(), nn.Conv1d(32, LETTERS + 1, 3, padding=1)
    )
    ctc = nn.CTCLoss(blank=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    lengths = torch.full((32,), 16), torch.full((32,), 4)
    for step in range(150):
        sound, texts = utterances(32)
        scores = model(sound.transpose(1, 2)).permute(2, 0, 1)  # frames first
        if args.healthy:
            scores = scores.log_softmax(2)
        loss = ctc(scores, texts, *lengths)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.3f}")
    sound, texts = utterances(200)
    with torch.no_grad():
        best = model(sound.transpose(1, 2)).argmax(1)
    wrong = sum(read(line) != text for line, text in zip(best, texts.tolist(), strict=True))
    print(f"final error rate {wrong / 200:.4f}")


if __name__ == "__main__":
    main()
