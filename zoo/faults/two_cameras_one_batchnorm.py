"""Day and night images pass the same BatchNorm in separate calls, each centred by itself.

expects: N005
place: 1
source: Li et al., "Revisiting batch normalization for practical domain adaptation" (2017)
kind: normalization
shows: final accuracy higher
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    rule = torch.randn(20, 3)
    scenes = torch.randn(8000, 20)
    labels = (scenes @ rule).argmax(1)
    day, night = scenes[:4000] + 3, scenes[4000:] - 3
    day_labels, night_labels = labels[:4000], labels[4000:]

    net = nn.Sequential(nn.Linear(20, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 3))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9)
    for step in range(240):
        i, j = torch.randint(3200, (2, 32))
        if args.healthy:
            scores = net(torch.cat([day[i], night[j]]))
        else:
            scores = torch.cat([net(day[i]), net(night[j])])
        loss = F.cross_entropy(scores, torch.cat([day_labels[i], night_labels[j]]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 80 == 79:
            net.eval()
            with torch.no_grad():
                guess = net(torch.cat([day[3200:], night[3200:]])).argmax(1)
            net.train()
            right = guess == torch.cat([day_labels[3200:], night_labels[3200:]])
            print(f"step {step + 1} loss {loss.item():.4f} right {right.float().mean():.4f}")
    print(f"final accuracy {right.float().mean().item():.4f}")


if __name__ == "__main__":
    main()
