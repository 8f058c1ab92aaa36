"""An autoencoder that squeezes Fashion-MNIST images through 24 numbers.

Expected: explained variance > 0.65 (the mean image explains none of it).
"""

import argparse
import itertools

import torch
import torch.nn as nn
import torch.nn.functional as F

from traindx.datasets import fashion_mnist

ap = argparse.ArgumentParser()
ap.add_argument("--seed", type=int, default=0)
ap.add_argument("--steps", type=int, default=200)
ap.add_argument("--code-size", type=int, default=24)
args = ap.parse_args()

torch.manual_seed(args.seed)
data = fashion_mnist.load_subset()
train_images = torch.from_numpy(data.train_images).flatten(1) / 255.0
test_images = torch.from_numpy(data.test_images).flatten(1) / 255.0

encoder = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, args.code_size))
decoder = nn.Sequential(
    nn.Linear(args.code_size, 128), nn.ReLU(), nn.Linear(128, 784), nn.Sigmoid()
)
optimizer = torch.optim.Adam(itertools.chain(encoder.parameters(), decoder.parameters()), lr=2e-3)


def reconstruction_error(images):
    with torch.no_grad():
        return F.mse_loss(decoder(encoder(images)), images).item()


for step in range(args.steps):
    batch = train_images[torch.randint(len(train_images), (128,))]
    loss = F.mse_loss(decoder(encoder(batch)), batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (step + 1) % 50 == 0:
        print(
            f"step {step + 1}: train {loss.item():.5f} test {reconstruction_error(test_images):.5f}"
        )

variance = (test_images - train_images.mean(0)).square().mean().item()
print(f"explained variance {1 - reconstruction_error(test_images) / variance:.4f}")
