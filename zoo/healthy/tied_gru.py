"""A GRU language model whose output layer shares the weights of its embedding.

Expected: excess nats < 0.15 (over the entropy of the source; an untrained model has about 1).
"""

import argparse

import torch
from torch import nn

VOCAB = 12


class TiedGRU(nn.Module):
    def __init__(self, size, dropout=0.0):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, size)
        self.gru = nn.GRU(size, size, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(size, VOCAB)
        self.out.weight = self.embed.weight
        nn.init.normal_(self.embed.weight, std=size**-0.5)

    def forward(self, ids):
        return self.out(self.dropout(self.gru(self.embed(ids))[0]))


def markov_chains(transition, count, length):
    state = torch.randint(VOCAB, (count,))
    chain = [state]
    for _ in range(length):
        state = torch.multinomial(transition[state], 1).squeeze(1)
        chain.append(state)
    return torch.stack(chain, 1)


cli = argparse.ArgumentParser()
cli.add_argument("--seed", type=int, default=0)
cli.add_argument("--size", type=int, default=32)
cli.add_argument("--iterations", type=int, default=200)
args = cli.parse_args()
torch.manual_seed(args.seed)

transition = torch.softmax(2 * torch.randn(VOCAB, VOCAB), dim=1)
train = markov_chains(transition, 2000, 20)
test = markov_chains(transition, 400, 20)
entropy = -transition[test[:, :-1], test[:, 1:]].log().mean()

model = TiedGRU(args.size)
optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-3)
loss_fn = nn.CrossEntropyLoss()
for iteration in range(args.iterations):
    batch = train[torch.randint(len(train), (40,))]
    loss = loss_fn(model(batch[:, :-1]).transpose(1, 2), batch[:, 1:])
    model.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 0.1)
    optimizer.step()
    if iteration % 50 == 49:
        print(iteration + 1, round(loss.item(), 4))

model.eval()
with torch.no_grad():
    nats = loss_fn(model(test[:, :-1]).transpose(1, 2), test[:, 1:])
print(f"excess nats: {max(0.0, (nats - entropy).item()):.4f}")
