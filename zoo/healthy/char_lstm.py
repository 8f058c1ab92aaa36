"""A language model on one long text, by truncated backpropagation through time.

The text is a made-up language of words; the state of the LSTM is carried from chunk to chunk.

Expected: bits per character < 1.9 (letters drawn alone need about 3.9).
"""

import argparse
import math

import torch
import torch.nn as nn


def make_text(words):
    lengths = torch.randint(3, 7, (30,)).tolist()
    dictionary = [torch.cat([torch.randint(1, 16, (n,)), torch.tensor([0])]) for n in lengths]
    return torch.cat([dictionary[i] for i in torch.randint(30, (words,)).tolist()])


def batchify(data, bsz):
    nbatch = len(data) // bsz
    return data[: nbatch * bsz].view(bsz, nbatch).t().contiguous()


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, nlayers, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers, dropout=dropout if nlayers > 1 else 0.0)
        self.decoder = nn.Linear(nhid, ntoken)

    def forward(self, source, hidden):
        emb = self.drop(self.encoder(source))
        output, hidden = self.rnn(emb, hidden)
        return self.decoder(self.drop(output)), hidden


def repackage_hidden(hidden):
    return tuple(h.detach() for h in hidden)


def evaluate(model, source, criterion):
    model.eval()
    with torch.no_grad():
        logits, _ = model(source[:-1], None)
    model.train()
    return criterion(logits.flatten(0, 1), source[1:].flatten()).item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bptt", type=int, default=24)
    parser.add_argument("--nhid", type=int, default=64)
    parser.add_argument("--nlayers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    text = make_text(5000)
    cut = len(text) * 9 // 10
    train, valid = batchify(text[:cut], 20), batchify(text[cut:], 5)
    model = RNNModel(16, 32, args.nhid, args.nlayers)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    for epoch in range(1, args.epochs + 1):
        hidden = None
        for i in range(0, train.size(0) - 1, args.bptt):
            seq_len = min(args.bptt, len(train) - 1 - i)
            data, target = train[i : i + seq_len], train[i + 1 : i + 1 + seq_len]
            optimizer.zero_grad()
            output, hidden = model(data, hidden)
            hidden = repackage_hidden(hidden)
            loss = criterion(output.view(-1, 16), target.reshape(-1))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
        loss = evaluate(model, valid, criterion)
        print(f"| end of epoch {epoch} | valid loss {loss:5.2f} | valid ppl {math.exp(loss):8.2f}")
    print(f"bits per character: {loss / math.log(2):.4f}")


if __name__ == "__main__":
    main()
