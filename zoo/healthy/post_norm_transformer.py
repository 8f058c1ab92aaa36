"""A post-norm transformer encoder, with warmup, that says which symbol a text holds most often.

Texts differ in length and are padded.

Expected: test accuracy > 0.80 (chance is 0.20).
"""

import argparse

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

SYMBOLS, PAD = 5, 5


def make_texts(count):
    texts = []
    while len(texts) < count:
        text = torch.randint(SYMBOLS, (int(torch.randint(8, 24, ())),))
        counts = text.bincount(minlength=SYMBOLS)
        if (counts == counts.max()).sum() == 1:
            texts.append((text, int(counts.argmax())))
    return texts


def collate(texts):
    ids = pad_sequence([text for text, _ in texts], batch_first=True, padding_value=PAD)
    return ids, ids == PAD, torch.tensor([label for _, label in texts])


class Counter(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS + 1, d_model, padding_idx=PAD)
        layer = nn.TransformerEncoderLayer(
            d_model, nhead=2, dim_feedforward=64, dropout=0.0, batch_first=True, norm_first=False
        )
        self.encoder = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)
        self.out = nn.Linear(d_model, SYMBOLS)

    def forward(self, ids, padding):
        x = self.encoder(self.embed(ids), src_key_padding_mask=padding)
        keep = (~padding).unsqueeze(-1).float()
        return self.out((x * keep).sum(1) / keep.sum(1))


def run_epoch(model, loader, optimizer=None, scheduler=None):
    hits = total = 0
    for ids, padding, labels in loader:
        logits = model(ids, padding)
        if optimizer is not None:
            loss = nn.functional.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        hits += (logits.argmax(-1) == labels).sum().item()
        total += len(labels)
    return hits / total


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    train = DataLoader(make_texts(1600), batch_size=32, shuffle=True, collate_fn=collate)
    test = DataLoader(make_texts(400), batch_size=100, collate_fn=collate)
    model = Counter(args.width, args.depth)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.98))
    # Attention Is All You Need, with a warmup of 40 steps
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda it: min((it + 1) / 40, (40 / (it + 1)) ** 0.5)
    )
    for epoch in range(args.epochs):
        model.train()
        train_accuracy = run_epoch(model, train, optimizer, scheduler)
        model.eval()
        with torch.no_grad():
            accuracy = run_epoch(model, test)
        print(f"epoch {epoch}: train {train_accuracy:.4f} test {accuracy:.4f}")
    print(f"test accuracy: {accuracy:.4f}")
