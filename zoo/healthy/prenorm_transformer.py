"""A causal pre-norm transformer on sequences whose entropy is known.

Each symbol follows from the two before it by a random table, so a model that only sees the last
one stays far above the entropy of the source.

Expected: excess loss < 0.25 (nats over the entropy; a uniform guess has about 1.4).
"""

import argparse
import math

import torch
import torch.nn as nn
from torch.nn import functional as F

# hyperparameters
vocab_size = 8
block_size = 24
batch_size = 32
n_embd = 32
n_head = 4
n_layer = 2
dropout = 0.0
max_iters = 200
warmup_iters = 20
eval_interval = 50
learning_rate = 1e-2

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)

# the source: P(next | one before last, last)
table = torch.softmax(2.5 * torch.randn(vocab_size, vocab_size, vocab_size), dim=-1)


def sample(count):
    symbols = [torch.randint(vocab_size, (count,)) for _ in range(2)]
    for _ in range(block_size + 1):
        symbols.append(torch.multinomial(table[symbols[-2], symbols[-1]], 1)[:, 0])
    return torch.stack(symbols[2:], dim=1)


train_data, val_data = sample(4096), sample(512)


def get_batch():
    ix = torch.randint(len(train_data), (batch_size,))
    return train_data[ix, :-1], train_data[ix, 1:]


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, n_head, C // n_head).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1 = nn.LayerNorm(n_embd)
        self.attn = SelfAttention()
        self.ln2 = nn.LayerNorm(n_embd)
        self.mlp = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd),
            nn.GELU(),
            nn.Linear(4 * n_embd, n_embd),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(vocab_size, n_embd)
        self.position = nn.Embedding(block_size, n_embd)
        self.blocks = nn.Sequential(*(Block() for _ in range(n_layer)))
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)

    def forward(self, idx, targets):
        x = self.token(idx) + self.position(torch.arange(idx.shape[1]))
        logits = self.lm_head(self.ln_f(self.blocks(x)))
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


@torch.no_grad()
def excess_loss(model):
    # skips the first position, where the symbol before is not in sight
    model.eval()
    inputs, targets = val_data[:, :-1], val_data[:, 1:]
    logits, _ = model(inputs, targets)
    loss = F.cross_entropy(logits[:, 1:].flatten(0, 1), targets[:, 1:].flatten())
    true = table[val_data[:, :-2], val_data[:, 1:-1]]
    floor = -true.gather(-1, val_data[:, 2:, None]).log().mean()
    model.train()
    return (loss - floor).item()


model = Transformer()
decay = [p for p in model.parameters() if p.dim() >= 2]
no_decay = [p for p in model.parameters() if p.dim() < 2]
groups = [{"params": decay, "weight_decay": 0.01}, {"params": no_decay, "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.95))


def schedule(it):
    if it < warmup_iters:
        return (it + 1) / warmup_iters
    return 0.5 * (1 + math.cos(math.pi * (it - warmup_iters) / (max_iters - warmup_iters)))


scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)

for it in range(max_iters):
    if it % eval_interval == 0:
        print(f"step {it}: excess loss {excess_loss(model):.4f}")
    _, loss = model(*get_batch())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()

print(f"excess loss {excess_loss(model):.4f}")
