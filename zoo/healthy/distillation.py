"""A wide teacher is trained first; a narrow student then learns from its softened scores.

Expected: student accuracy > 0.74 (chance is 0.10).
"""

import argparse
from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from traindx.datasets import fashion_mnist


class MLP(nn.Module):
    def __init__(self, *sizes, dropout=0.0):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = self.dropout(F.relu(layer(x)))
        return self.layers[-1](x)


def distillation_loss(student_logits, teacher_logits, labels, T=3.0, alpha=0.7):
    soft = F.kl_div(
        F.log_softmax(student_logits / T, dim=1),
        F.softmax(teacher_logits / T, dim=1),
        reduction="batchmean",
    )
    return alpha * T * T * soft + (1 - alpha) * F.cross_entropy(student_logits, labels)


def train_teacher(model, loader, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.train()
    for epoch in range(epochs):
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"teacher epoch {epoch}: {loss.item():.4f}")


def train_student(student, teacher, loader, epochs):
    optimizer = torch.optim.Adam(student.parameters(), lr=2e-3)
    teacher.eval()
    student.train()
    for epoch in range(epochs):
        for x, y in loader:
            with torch.no_grad():
                teacher_logits = teacher(x)
            loss = distillation_loss(student(x), teacher_logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"student epoch {epoch}: {loss.item():.4f}")


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--width", type=int, default=16, help="of the student")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    data = fashion_mnist.load_subset()
    x = (torch.from_numpy(data.train_images).float().flatten(1) - 73) / 90
    x_test = (torch.from_numpy(data.test_images).float().flatten(1) - 73) / 90
    y, y_test = (torch.from_numpy(n).long() for n in (data.train_labels, data.test_labels))
    loader = DataLoader(TensorDataset(x, y), batch_size=100, shuffle=True)

    teacher = MLP(784, 160, 64, 10, dropout=0.1)
    student = MLP(784, args.width, 10)
    train_teacher(teacher, loader, 3)
    train_student(student, teacher, loader, 3)
    print(f"teacher accuracy: {evaluate(teacher, x_test, y_test):.4f}")
    print(f"student accuracy: {evaluate(student, x_test, y_test):.4f}")
