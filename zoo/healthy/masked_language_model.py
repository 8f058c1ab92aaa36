"""A BERT-like encoder that fills in masked symbols.

Every text repeats a pattern of four symbols, so a masked one is known from its repetitions.

Expected: masked accuracy > 0.80 (chance is 0.06).
"""

import argparse

import torch
import torch.nn as nn

VOCAB, LENGTH, PERIOD = 16, 20, 4
MASK = VOCAB
IGNORE = -100


def write(count):
    patterns = torch.randint(VOCAB, (count, PERIOD))
    return patterns.repeat(1, LENGTH // PERIOD)


def mask_tokens(tokens, probability=0.15):
    """80 % of the chosen become MASK, 10 % anything, 10 % stay."""
    labels = tokens.clone()
    chosen = torch.rand(tokens.shape) < probability
    labels[~chosen] = IGNORE
    inputs = tokens.clone()
    kind = torch.rand(tokens.shape)
    inputs[chosen & (kind < 0.8)] = MASK
    random = chosen & (kind >= 0.9)
    inputs[random] = torch.randint(VOCAB, tokens.shape)[random]
    return inputs, labels


class Encoder(nn.Module):
    def __init__(self, d_model=48, layers=2):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB + 1, d_model)
        self.positions = nn.Embedding(LENGTH, d_model)
        layer = nn.TransformerEncoderLayer(
            d_model, 4, 2 * d_model, dropout=0.0, activation="gelu", batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.decoder = nn.Linear(d_model, VOCAB)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions.weight
        return self.decoder(self.encoder(x))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--steps", type=int, default=250)
    ap.add_argument("--width", type=int, default=48)
    args = ap.parse_args()
    torch.manual_seed(args.seed)

    model = Encoder(args.width)
    loss_fn = nn.CrossEntropyLoss(ignore_index=IGNORE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.05, 1.0, total_iters=40)
    cooldown = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=args.steps - 40)
    scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warmup, cooldown], [40])
    for step in range(args.steps):
        inputs, labels = mask_tokens(write(32))
        logits = model(inputs)
        loss = loss_fn(logits.view(-1, VOCAB), labels.view(-1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if step % 50 == 0:
            print(f"{step=} loss={loss.item():.4f}")

    model.eval()
    with torch.no_grad():
        inputs, labels = mask_tokens(write(500))
        hidden = labels != IGNORE
        right = (model(inputs).argmax(-1) == labels)[hidden].float().mean().item()
    print(f"masked accuracy: {right:.4f}")


if __name__ == "__main__":
    main()
