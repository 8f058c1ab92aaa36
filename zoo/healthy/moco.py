"""Momentum contrast: a queue of negatives, and an encoder of keys that follows slowly.

Views are noisy copies of points on twelve hidden directions; the features should tell them apart.

Expected: neighbour accuracy > 0.75 (chance is 0.08; raw inputs reach about 0.5).
"""

import argparse
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

CLASSES, SIGNAL, NUISANCE = 12, 8, 40


class MoCo(nn.Module):
    def __init__(self, dim, K, m=0.97, T=0.2):
        super().__init__()
        self.K, self.m, self.T = K, m, T
        self.encoder_q = nn.Sequential(
            nn.Linear(SIGNAL + NUISANCE, 64), nn.ReLU(), nn.Linear(64, dim)
        )
        self.encoder_k = copy.deepcopy(self.encoder_q)
        for param in self.encoder_k.parameters():
            param.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(K, dim), dim=1))
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def _momentum_update(self):
        for q, k in zip(self.encoder_q.parameters(), self.encoder_k.parameters(), strict=True):
            k.lerp_(q, 1 - self.m)

    @torch.no_grad()
    def _enqueue(self, keys):
        ptr = int(self.queue_ptr)
        self.queue[ptr : ptr + len(keys)] = keys
        self.queue_ptr[0] = (ptr + len(keys)) % self.K

    def forward(self, im_q, im_k):
        q = F.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():
            self._momentum_update()
            k = F.normalize(self.encoder_k(im_k), dim=1)
        l_pos = (q * k).sum(1, keepdim=True)
        l_neg = q @ self.queue.clone().T
        logits = torch.cat([l_pos, l_neg], dim=1) / self.T
        self._enqueue(k)
        return logits, torch.zeros(len(q), dtype=torch.long)


def points(n, centers):
    labels = torch.randint(CLASSES, (n,))
    return centers[labels] + 0.3 * torch.randn(n, SIGNAL), labels


def view(signal):
    """The signal stays nearly the same; all else is new noise in every view."""
    noisy = signal + 0.2 * torch.randn_like(signal)
    return torch.cat([noisy, torch.randn(len(signal), NUISANCE)], dim=1)


@torch.no_grad()
def neighbour_accuracy(embed, x, y):
    z = F.normalize(embed(x), dim=1)
    similarity = (z @ z.T).fill_diagonal_(-2)
    return (y[similarity.argmax(1)] == y).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--moco-k", type=int, default=512)
    parser.add_argument("--moco-dim", type=int, default=16)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    centers = 1.5 * F.normalize(torch.randn(CLASSES, SIGNAL), dim=1) * SIGNAL**0.5 / 1.5
    model = MoCo(args.moco_dim, args.moco_k)
    optimizer = torch.optim.SGD(
        model.encoder_q.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4
    )
    signal, labels = points(600, centers)
    x = view(signal)
    print(f"raw inputs: {neighbour_accuracy(lambda v: v, x, labels):.4f}")
    for step in range(args.steps):
        batch, _ = points(64, centers)
        logits, target = model(view(batch), view(batch))
        loss = F.cross_entropy(logits, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    model.eval()
    print(f"neighbour accuracy: {neighbour_accuracy(model.encoder_q, x, labels):.4f}")


if __name__ == "__main__":
    main()
