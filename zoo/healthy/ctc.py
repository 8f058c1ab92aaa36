"""Reads the digits of a noisy signal with CTC: nobody says where each of them stands.

Expected: digits right > 0.85 (one minus the edit distance by length; before training it is 0).
"""

import argparse

import torch
import torch.nn as nn

DIGITS, FEATURES, FRAMES = 6, 12, 32  # class 0 is the blank


def speak(count, voices):
    signals = 0.5 * torch.randn(count, FRAMES, FEATURES)
    texts = []
    for i in range(count):
        text = torch.randint(1, DIGITS + 1, (int(torch.randint(3, 6, ())),))
        t = int(torch.randint(0, 4, ()))
        for digit in text:
            length = int(torch.randint(2, 5, ()))
            signals[i, t : t + length] += voices[digit]
            t += length + int(torch.randint(1, 3, ()))
        texts.append(text)
    return signals, texts


class Recognizer(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.conv = nn.Conv1d(FEATURES, hidden, 3, padding=1)
        self.norm = nn.BatchNorm1d(hidden)
        self.gru = nn.GRU(hidden, hidden, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * hidden, DIGITS + 1)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x.transpose(1, 2)))).transpose(1, 2)
        return self.fc(self.gru(x)[0]).log_softmax(-1)


def greedy(log_probs):
    best = log_probs.argmax(-1)
    return [[int(c) for c in torch.unique_consecutive(row) if c != 0] for row in best]


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--steps", type=int, default=150)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    voices = torch.randn(DIGITS + 1, FEATURES)
    signals, texts = speak(1000, voices)
    test_signals, test_texts = speak(200, voices)

    model = Recognizer(args.hidden)
    ctc_loss = nn.CTCLoss(blank=0, zero_infinity=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(args.steps):
        idx = torch.randint(len(texts), (32,)).tolist()
        targets = [texts[i] for i in idx]
        log_probs = model(signals[idx]).transpose(0, 1)
        loss = ctc_loss(
            log_probs,
            torch.cat(targets),
            torch.full((32,), FRAMES),
            torch.tensor([len(t) for t in targets]),
        )
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if step % 30 == 0:
            print(f"step {step}: ctc {loss.item():.4f}")

    model.eval()
    with torch.no_grad():
        read = greedy(model(test_signals))
    errors = sum(edit_distance(r, t.tolist()) for r, t in zip(read, test_texts, strict=True))
    total = sum(len(t) for t in test_texts)
    print(f"digits right: {max(0.0, 1 - errors / total):.4f}")


if __name__ == "__main__":
    main()
