"""Sound comes as whole numbers of sixteen bits and is only made float.

expects: L007
place: features.0
source: audio files read by one library scaled, by another raw
kind: preprocessing
shows: final loss lower
"""

import argparse
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def tones(n, length=256):
    """Notes of three instruments, as integers of 16 bits."""
    instrument = torch.randint(3, (n,))
    t = torch.arange(length) / length * 2 * math.pi
    pitch = 4 + 8 * torch.rand(n, 1)
    base = torch.sin(pitch * t)
    overtone = torch.sin((instrument[:, None] + 2) * pitch * t)
    sound = base + 0.7 * overtone + 0.3 * torch.randn(n, length)
    return (sound * 9000).clamp(-32768, 32767).to(torch.int16), instrument


def build():
    features = nn.Sequential(
        nn.Conv1d(1, 12, 9, stride=4),
        nn.ReLU(),
        nn.Conv1d(12, 16, 5, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(4),
        nn.Flatten(),
    )
    return nn.ModuleDict({"features": features, "classify": nn.Linear(64, 3)})


class Instrument(nn.Module):
    def __init__(self):
        super().__init__()
        parts = build()
        self.features, self.classify = parts["features"], parts["classify"]

    def forward(self, sound):
        return self.classify(self.features(sound))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    sound, instrument = tones(1500)
    waves = sound.float().unsqueeze(1)
    if args.healthy:
        waves = waves / 32768
    loader = DataLoader(TensorDataset(waves[:1200], instrument[:1200]), 40, shuffle=True)
    model, criterion = Instrument(), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(5):
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        print(f"final loss {criterion(model(waves[1200:]), instrument[1200:]).item():.4f}")


if __name__ == "__main__":
    main()
