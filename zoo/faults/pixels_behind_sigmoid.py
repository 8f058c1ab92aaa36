"""An autoencoder draws with a sigmoid between 0 and 1, and is compared with pixels up to 255.

expects: L003
place:
source: a conversion of the images that was done for the input only
kind: loss-pairing
shows: final similarity higher
"""

import argparse

import torch
from torch import nn

from traindx.datasets import fashion_mnist

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--healthy", action="store_true")
args = parser.parse_args()
torch.manual_seed(args.seed)

data = fashion_mnist.load_subset()
pixels = torch.from_numpy(data.train_images).float().flatten(1)
held_out = torch.from_numpy(data.test_images).float().flatten(1)
encoder = nn.Sequential(nn.Linear(784, 96), nn.ReLU(), nn.Linear(96, 24))
decoder = nn.Sequential(nn.Linear(24, 96), nn.ReLU(), nn.Linear(96, 784), nn.Sigmoid())
autoencoder = nn.Sequential(encoder, decoder)
optimizer = torch.optim.Adam(autoencoder.parameters(), lr=2e-3)
brightest = 255.0 if args.healthy else 1.0
for step in range(150):
    batch = pixels[torch.randint(len(pixels), (64,))]
    drawn = autoencoder(batch / 255)
    loss = nn.functional.mse_loss(drawn, batch / brightest)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        print(f"step {step + 1} loss {loss.item():.4f}")

with torch.no_grad():
    drawn = autoencoder(held_out / 255)
    centred, truth = drawn - drawn.mean(), held_out - held_out.mean()
    similarity = (centred * truth).sum() / (centred.norm() * truth.norm())
print(f"final similarity {similarity.item():.4f}")
