"""Half of the pictures are mirrored as they are read, and their masks are not.

expects: L010
place:
source: an augmentation for classification used for segmentation
kind: data
shows: final overlap higher
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def shadows(n):
    """A bright field somewhere in the noise, and where it is."""
    picture, mask = 0.3 * torch.randn(n, 1, 16, 16), torch.zeros(n, 16, 16)
    for k in range(n):
        top, left = torch.randint(0, 10, (2,)).tolist()
        picture[k, 0, top : top + 7, left : left + 5] += 1
        mask[k, top : top + 7, left : left + 5] = 1
    return picture, mask


class Scans(Dataset):
    def __init__(self, n, mirror_masks):
        self.pictures, self.masks = shadows(n)
        self.mirror_masks = mirror_masks

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, place):
        picture, mask = self.pictures[place], self.masks[place]
        if torch.rand(()) < 0.5:
            picture = picture.flip(-1)
            if self.mirror_masks:
                mask = mask.flip(-1)
        return picture, mask


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Flatten(),
            nn.Linear(256, 64),
            nn.ReLU(),
            nn.Linear(64, 256),
            nn.Unflatten(1, (16, 16)),
        )

    def forward(self, x):
        return self.body(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    loader = DataLoader(Scans(256, args.healthy), batch_size=16, shuffle=True)
    model = Segmenter()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(10):
        for picture, mask in loader:
            loss = criterion(model(picture), mask)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    picture, mask = shadows(100)
    with torch.no_grad():
        drawn, true = model(picture) > 0, mask > 0
    print(f"final overlap {((drawn & true).sum() / (drawn | true).sum()).item():.4f}")


if __name__ == "__main__":
    main()
