"""A siamese network with the contrastive loss: are two images of the same kind?

Expected: pairs right > 0.82 (chance is 0.50).
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from traindx.datasets import fashion_mnist


class PairDataset(Dataset):
    def __init__(self, images, labels, pairs, generator):
        self.images = torch.from_numpy(images).float().div(255).sub(0.2869).div(0.3538)
        labels = torch.from_numpy(labels).long()
        members = [torch.where(labels == c)[0] for c in range(10)]
        self.pairs = []
        for i in range(pairs):
            a = int(torch.randint(len(labels), (), generator=generator))
            same = i % 2
            c = int(labels[a])
            if not same:
                c = (c + int(torch.randint(1, 10, (), generator=generator))) % 10
            b = int(members[c][torch.randint(len(members[c]), (), generator=generator)])
            self.pairs.append((a, b, float(same)))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        a, b, same = self.pairs[index]
        return self.images[a], self.images[b], same


class SiameseNet(nn.Module):
    def __init__(self, hidden=100, dim=16):
        super().__init__()
        self.embedding_net = nn.Sequential(
            nn.Flatten(), nn.Linear(784, hidden), nn.PReLU(), nn.Linear(hidden, dim)
        )

    def forward(self, x1, x2):
        return self.embedding_net(x1), self.embedding_net(x2)


class ContrastiveLoss(nn.Module):
    def __init__(self, margin=1.0):
        super().__init__()
        self.margin = margin

    def forward(self, z1, z2, same):
        squared = (z1 - z2).square().sum(1)
        apart = torch.relu(self.margin - (squared + 1e-8).sqrt()).square()
        return (0.5 * (same * squared + (1 - same) * apart)).mean()


@torch.no_grad()
def pairs_right(model, loader, threshold=0.5):
    model.eval()
    right = total = 0
    for x1, x2, same in loader:
        z1, z2 = model(x1, x2)
        right += (((z1 - z2).norm(dim=1) < threshold) == (same > 0.5)).sum().item()
        total += len(same)
    return right / total


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--hidden", type=int, default=100)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = torch.Generator().manual_seed(args.seed)
    data = fashion_mnist.load_subset()
    train_set = PairDataset(data.train_images, data.train_labels, 6000, rng)
    test_set = PairDataset(data.test_images, data.test_labels, 1000, rng)
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=250)

    model = SiameseNet(args.hidden)
    loss_fn = ContrastiveLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        model.train()
        for x1, x2, same in train_loader:
            optimizer.zero_grad()
            loss = loss_fn(*model(x1, x2), same.float())
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f} right {pairs_right(model, test_loader):.4f}")
    print(f"pairs right: {pairs_right(model, test_loader):.4f}")
