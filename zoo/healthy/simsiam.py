"""SimSiam: two views, a predictor, and no gradient through the other side.

A view shows what a thing is (one of ten), turned into a vector, beside much that changes.

Expected: probe accuracy > 0.63 (chance is 0.10; from the views themselves about 0.5).
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

KINDS, CONTENT, STYLE = 10, 6, 42


class SimSiam(nn.Module):
    def __init__(self, width=128, dim=64):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(CONTENT + STYLE, width, bias=False), nn.BatchNorm1d(width), nn.ReLU(),
        )  # fmt: skip
        self.projector = nn.Sequential(
            nn.Linear(width, dim, bias=False),
            nn.BatchNorm1d(dim),
            nn.ReLU(),
            nn.Linear(dim, dim, bias=False),
            nn.BatchNorm1d(dim, affine=False),
        )
        self.predictor = nn.Sequential(
            nn.Linear(dim, dim // 4, bias=False),
            nn.BatchNorm1d(dim // 4),
            nn.ReLU(),
            nn.Linear(dim // 4, dim),
        )

    def forward(self, x1, x2):
        z1, z2 = self.projector(self.encoder(x1)), self.projector(self.encoder(x2))
        return self.predictor(z1), self.predictor(z2), z1.detach(), z2.detach()


def things(n, prototypes):
    kind = torch.randint(KINDS, (n,))
    return prototypes[kind] + 0.2 * torch.randn(n, CONTENT), kind


def view(content, mixing):
    seen = content + 0.2 * torch.randn_like(content)
    return torch.cat([seen, 1.5 * torch.randn(len(content), STYLE)], dim=1) @ mixing


@torch.no_grad()
def probe(features, kind):
    """Named after the nearest other thing."""
    z = F.normalize(features, dim=1)
    nearest = (z @ z.T).fill_diagonal_(-2).argmax(1)
    return (kind[nearest] == kind).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--width", type=int, default=128)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    prototypes = 1.5 * torch.randn(KINDS, CONTENT)
    mixing = torch.linalg.qr(torch.randn(CONTENT + STYLE, CONTENT + STYLE)).Q
    content, kind = things(600, prototypes)
    x_test = view(content, mixing)
    print(f"the views themselves: {probe(x_test, kind):.4f}")
    model = SimSiam(args.width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    criterion = nn.CosineSimilarity(dim=1)
    for step in range(args.steps):
        content, _ = things(128, prototypes)
        p1, p2, z1, z2 = model(view(content, mixing), view(content, mixing))
        loss = -(criterion(p1, z2).mean() + criterion(p2, z1).mean()) * 0.5
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 80 == 0:
            spread = F.normalize(z1, dim=1).std(0).mean().item()
            print(f"step {step}: loss {loss.item():.4f}, spread {spread:.4f}")
    model.eval()
    with torch.no_grad():
        accuracy = probe(model.encoder(x_test), kind)
    print(f"probe accuracy: {accuracy:.4f}")


if __name__ == "__main__":
    main()
