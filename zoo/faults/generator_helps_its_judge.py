"""The generator is trained to have its pictures called fake, and so helps the discriminator.

expects: O012
place:
source: the labels of the two players of an adversarial training, exchanged for one of them
kind: loop
shows: final distance lower
"""

import argparse

import torch
from torch import nn, optim


class Game:
    def __init__(self, wanted):
        self.generator = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 1))
        self.judge = nn.Sequential(nn.Linear(1, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))
        self.g_optimizer = optim.Adam(self.generator.parameters(), lr=2e-3, betas=(0.5, 0.99))
        self.j_optimizer = optim.Adam(self.judge.parameters(), lr=4e-3, betas=(0.5, 0.99))
        self.bce = nn.BCEWithLogitsLoss()
        self.wanted = wanted

    def loss(self, samples, label):
        scores = self.judge(samples)
        return self.bce(scores, torch.full_like(scores, label))

    def play(self, real):
        fake = self.generator(torch.randn(len(real), 2))
        self.j_optimizer.zero_grad()
        j_loss = self.loss(real, 1.0) + self.loss(fake.detach(), 0.0)
        j_loss.backward()
        self.j_optimizer.step()

        self.g_optimizer.zero_grad()
        g_loss = self.loss(fake, self.wanted)
        g_loss.backward()
        self.g_optimizer.step()
        return j_loss.item(), g_loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    game = Game(wanted=1.0 if args.healthy else 0.0)
    for step in range(300):
        j_loss, g_loss = game.play(2 + 0.5 * torch.randn(64, 1))
        if step % 60 == 0:
            print(f"step {step} judge {j_loss:.3f} generator {g_loss:.3f}")
    with torch.no_grad():
        made = game.generator(torch.randn(2000, 2))
    print(f"final distance {abs(made.mean().item() - 2):.4f}")


if __name__ == "__main__":
    main()
