"""The critic is kept in eval mode, in which spectral normalization never updates its vectors.

expects: E002
place:
source: eval() put on a critic for the sake of determinism (Miyato et al. 2018 on the iteration)
kind: mode
shows: final norm lower
"""

import argparse

import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm


class Critic(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.layers = nn.Sequential(
            spectral_norm(nn.Linear(6, width)),
            nn.LeakyReLU(0.2),
            spectral_norm(nn.Linear(width, width)),
            nn.LeakyReLU(0.2),
            spectral_norm(nn.Linear(width, 1)),
        )

    def forward(self, x):
        return self.layers(x)[:, 0]

    @torch.no_grad()
    def largest_gain(self):
        linears = [layer for layer in self.layers if isinstance(layer, nn.Linear)]
        return max(torch.linalg.matrix_norm(linear.weight, 2).item() for linear in linears)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    critic = Critic()
    critic.train(args.healthy)
    optimizer = torch.optim.Adam(critic.parameters(), lr=2e-3)
    shift = torch.linspace(-1, 1, 6)
    for step in range(300):
        real = torch.randn(64, 6) * 0.5 + shift
        fake = torch.randn(64, 6) * 0.7 - shift
        loss = (1 - critic(real)).relu().mean() + (1 + critic(fake)).relu().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 99:
            print(f"step {step + 1} loss {loss.item():.4f}")
    critic.eval()
    print(f"final norm {critic.largest_gain():.4f}")


if __name__ == "__main__":
    main()
