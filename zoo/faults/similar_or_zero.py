"""Unlike pairs are marked 0 and not -1, and the cosine loss leaves them out.

expects: L003
place:
source: targets of a loss for pairs, taken for a usual binary label
kind: loss-pairing
shows: final separation higher
"""

import argparse

import torch
from torch import nn

from traindx.datasets import fashion_mnist


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 16))

    def forward(self, x):
        return self.net(x)


def cosines(embedder, a, b):
    return nn.functional.cosine_similarity(embedder(a), embedder(b))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = fashion_mnist.load_subset()
    images = torch.from_numpy(data.train_images).float().flatten(1).sub(73.2).div(90.2)
    labels = torch.from_numpy(data.train_labels).long()

    unlike = -1.0 if args.healthy else 0.0
    embedder = Embedder()
    criterion = nn.CosineEmbeddingLoss(margin=0.2)
    optimizer = torch.optim.Adam(embedder.parameters(), lr=1e-3)
    for step in range(150):
        i, j = torch.randint(len(images), (2, 64))
        j[:32] = i[:32].clone()
        for row in range(32):  # half of the pairs show the same kind of clothing
            same = (labels == labels[i[row]]).nonzero().flatten()
            j[row] = same[torch.randint(len(same), ())]
        target = torch.where(labels[i] == labels[j], 1.0, unlike)
        loss = criterion(embedder(images[i]), embedder(images[j]), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}")
    test = torch.from_numpy(data.test_images).float().flatten(1).sub(73.2).div(90.2)
    kinds = torch.from_numpy(data.test_labels).long()
    other = torch.randperm(len(test))
    with torch.no_grad():
        cosine = cosines(embedder, test, test[other])
    alike = kinds == kinds[other]
    print(f"final separation {(cosine[alike].mean() - cosine[~alike].mean()).item():.4f}")


if __name__ == "__main__":
    main()
