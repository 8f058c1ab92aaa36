"""Letters are counted from 0, which is the number that the alignment loss keeps for its blank.

expects: L003
place:
source: the default blank of CTC, beside an alphabet that starts at the same number
kind: loss-pairing
shows: final letters read higher
"""

import argparse

import torch
from torch import nn

LETTERS, LONG = 6, 4


def strokes(n, shapes):
    """Words of four different letters, each three frames long."""
    words = torch.rand(n, LETTERS).argsort(1)[:, :LONG]
    frames = shapes[words].repeat_interleave(3, dim=1)
    return frames + 0.3 * torch.randn_like(frames), words


def collapsed(symbols, blank):
    """What is read: repetitions once, blanks not at all."""
    pairs = zip(symbols, [None, *symbols], strict=False)
    return [one for one, before in pairs if one not in (before, blank)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    shapes = torch.randn(LETTERS, 12)
    reader = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, LETTERS + 1))
    blank = LETTERS if args.healthy else 0
    ctc = nn.CTCLoss(blank=blank)
    optimizer = torch.optim.Adam(reader.parameters(), lr=1e-2)
    for step in range(150):
        frames, words = strokes(16, shapes)
        scores = reader(frames).log_softmax(-1).transpose(0, 1)
        loss = ctc(scores, words, torch.full((16,), 3 * LONG), torch.full((16,), LONG))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 29:
            print(f"step {step + 1} loss {loss.item():.4f}")
    frames, words = strokes(200, shapes)
    with torch.no_grad():
        best = reader(frames).argmax(-1).tolist()
    read = [collapsed(row, blank) == word for row, word in zip(best, words.tolist(), strict=True)]
    print(f"final letters read {sum(read) / len(read):.4f}")


if __name__ == "__main__":
    main()
