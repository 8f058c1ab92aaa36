"""An LSTM that expects time first is given the batch first, and reads from sample to sample.

expects: E007
place: lstm
source: the default of batch_first
kind: architecture
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Gesture(nn.Module):
    def __init__(self, batch_first):
        super().__init__()
        self.lstm = nn.LSTM(3, 32, batch_first=batch_first)
        self.classifier = nn.Linear(32, 3)

    def forward(self, motion):
        states, _ = self.lstm(motion)
        return self.classifier(states[:, -1])


def gestures(n, steps=16):
    """Acceleration in three directions; which direction came first tells the gesture."""
    motion = 0.3 * torch.randn(n, steps, 3)
    kind = torch.randint(3, (n,))
    for i, k in enumerate(kind.tolist()):
        motion[i, torch.randint(0, 6, ()), k] += 2.5
        motion[i, torch.randint(8, 14, ()), (k + 1) % 3] += 2.5
    return motion, kind


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    loader = DataLoader(TensorDataset(*gestures(1200)), batch_size=40, shuffle=True)
    motion, kind = gestures(400)
    model = Gesture(batch_first=args.healthy)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(5):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        print(f"final accuracy {(model(motion).argmax(1) == kind).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
