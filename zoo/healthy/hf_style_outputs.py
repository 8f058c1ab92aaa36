"""A model in the style of a hub: it takes labels, and returns loss and logits in one object.

A trainer clips, accumulates and warms up; texts are padded with a label of -100.

Expected: tag accuracy > 0.85 (the most frequent tag has 0.25).
"""

import argparse
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    vocab_size: int = 30
    hidden_size: int = 32
    num_hidden_layers: int = 2
    num_labels: int = 4
    pad_token_id: int = 0


@dataclass
class TokenClassifierOutput:
    logits: torch.Tensor
    loss: torch.Tensor | None = None


class ModelForTokenClassification(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size, config.pad_token_id)
        self.encoder = nn.LSTM(
            config.hidden_size,
            config.hidden_size,
            config.num_hidden_layers,
            batch_first=True,
            bidirectional=True,
        )
        self.dropout = nn.Dropout(0.1)
        self.classifier = nn.Linear(2 * config.hidden_size, config.num_labels)

    def forward(self, input_ids, attention_mask, labels=None):
        hidden, _ = self.encoder(self.embeddings(input_ids) * attention_mask.unsqueeze(-1))
        logits = self.classifier(self.dropout(hidden))
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(
                logits.view(-1, self.config.num_labels), labels.view(-1), ignore_index=-100
            )
        return TokenClassifierOutput(logits=logits, loss=loss)


class TagDataset(Dataset):
    """The tag of a word is the sum of its kind and the kind of the word before, modulo four."""

    def __init__(self, count, config):
        self.features = []
        for _ in range(count):
            ids = torch.randint(1, config.vocab_size, (int(torch.randint(6, 15, ())),))
            kinds = ids % 2
            before = torch.cat([torch.zeros(1, dtype=torch.long), ids[:-1] % 2])
            self.features.append({"input_ids": ids, "labels": 2 * before + kinds})

    def __len__(self):
        return len(self.features)

    def __getitem__(self, i):
        return self.features[i]


def data_collator(features):
    longest = max(len(f["input_ids"]) for f in features)
    ids = torch.zeros(len(features), longest, dtype=torch.long)
    labels = torch.full((len(features), longest), -100)
    for i, f in enumerate(features):
        ids[i, : len(f["input_ids"])] = f["input_ids"]
        labels[i, : len(f["labels"])] = f["labels"]
    return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": labels}


class Trainer:
    def __init__(self, model, train_dataset, eval_dataset, epochs, lr=1e-2, accumulation=2):
        self.model, self.epochs, self.accumulation = model, epochs, accumulation
        self.train_loader = DataLoader(
            train_dataset, batch_size=16, shuffle=True, collate_fn=data_collator
        )
        self.eval_loader = DataLoader(eval_dataset, batch_size=64, collate_fn=data_collator)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
        total = epochs * len(self.train_loader) // accumulation
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda s: min((s + 1) / 10, max(0.02, 1 - s / total))
        )

    def train(self):
        self.model.train()
        step = 0
        for epoch in range(self.epochs):
            for batch in self.train_loader:
                outputs = self.model(**batch)
                (outputs.loss / self.accumulation).backward()
                step += 1
                if step % self.accumulation == 0:
                    nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                    self.optimizer.step()
                    self.scheduler.step()
                    self.optimizer.zero_grad()
            print({"epoch": epoch, "loss": round(outputs.loss.item(), 4)})

    def evaluate(self):
        self.model.eval()
        right = total = 0
        with torch.no_grad():
            for batch in self.eval_loader:
                keep = batch["labels"] != -100
                predictions = self.model(**batch).logits.argmax(-1)
                right += (predictions == batch["labels"])[keep].sum().item()
                total += keep.sum().item()
        return {"tag accuracy": right / total}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hidden_size", type=int, default=32)
    parser.add_argument("--num_train_epochs", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    config = Config(hidden_size=args.hidden_size)
    trainer = Trainer(
        ModelForTokenClassification(config),
        TagDataset(1000, config),
        TagDataset(200, config),
        args.num_train_epochs,
    )
    trainer.train()
    for name, value in trainer.evaluate().items():
        print(f"{name}: {value:.4f}")
