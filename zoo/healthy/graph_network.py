"""A graph convolutional network on a graph with four communities, ten labels each.

The features are too noisy to tell the communities alone; the edges tell the rest.

Expected: test accuracy > 0.80 (chance is 0.25).
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=120)
parser.add_argument("--hidden", type=int, default=16)
parser.add_argument("--dropout", type=float, default=0.5)
args = parser.parse_args()
torch.manual_seed(args.seed)


def stochastic_block_model(nodes=400, classes=4, p_in=0.05, p_out=0.005, features=32):
    y = torch.arange(nodes) % classes
    p = torch.where(y[:, None] == y[None, :], p_in, p_out)
    upper = torch.triu(torch.rand(nodes, nodes) < p, diagonal=1).float()
    centers = torch.randn(classes, features)
    x = centers[y] * 0.5 + torch.randn(nodes, features)
    return x / x.std(), y, upper + upper.T


def normalize(adj):
    adj = adj + torch.eye(len(adj))
    d = adj.sum(1).rsqrt()
    return (d[:, None] * adj * d[None, :]).to_sparse()


class GraphConvolution(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_features, out_features))
        self.bias = nn.Parameter(torch.zeros(out_features))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, adj):
        return torch.sparse.mm(adj, x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super().__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


features, labels, adj = stochastic_block_model()
adj = normalize(adj)
order = torch.randperm(len(labels))
idx_train, idx_val, idx_test = order[:40], order[40:140], order[140:]

model = GCN(features.shape[1], args.hidden, 4, args.dropout)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(args.epochs):
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss_train = F.nll_loss(output[idx_train], labels[idx_train])
    loss_train.backward()
    optimizer.step()
    if epoch % 30 == 0:
        model.eval()
        with torch.no_grad():
            output = model(features, adj)
            loss_val = F.nll_loss(output[idx_val], labels[idx_val])
        print(f"Epoch {epoch:04d} train {loss_train.item():.4f} val {loss_val.item():.4f}")

model.eval()
with torch.no_grad():
    correct = model(features, adj)[idx_test].argmax(1) == labels[idx_test]
print(f"test accuracy {correct.float().mean().item():.4f}")
