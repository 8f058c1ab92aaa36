"""The norm of the gradient is clipped to 1e-4, which leaves nothing of any step.

expects: G009
place: SGD
source: a clipping threshold that was meant for single elements
kind: gradient
shows: final loss lower
"""

import argparse
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Settings:
    lr: float = 0.5
    clip: float = 1e-4
    steps: int = 200


class CharModel(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.embed = nn.Embedding(letters, 16)
        self.gru = nn.GRU(16, 48, batch_first=True)
        self.out = nn.Linear(48, letters)

    def forward(self, text):
        return self.out(self.gru(self.embed(text))[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    settings = Settings(clip=1.0) if args.healthy else Settings()
    line = "to be or not to be that is the question whether tis nobler in the mind to suffer "
    letters = sorted(set(line))
    text = torch.tensor([letters.index(c) for c in line * 4])
    model = CharModel(len(letters))
    optimizer = torch.optim.SGD(model.parameters(), lr=settings.lr, momentum=0.9)
    for step in range(settings.steps):
        starts = torch.randint(len(text) - 21, (16, 1)) + torch.arange(21)
        chunk = text[starts]
        scores = model(chunk[:, :-1])
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), chunk[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        scores = model(text[None, :-1])[0]
        print(f"final loss {nn.functional.cross_entropy(scores, text[1:]).item():.4f}")


if __name__ == "__main__":
    main()
