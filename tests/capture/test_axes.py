"""Which axis holds the features of what a normalization is given."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from tests.capture.watched import watched
from traindx.capture.axes import normalized_input

X = torch.randn(4, 10, 6)


class Mixer(nn.Module):
    """Mixes positions by a linear layer between two transpositions, around a skip or not."""

    def __init__(self, skip: bool) -> None:
        super().__init__()
        self.lift, self.mix, self.skip = nn.Linear(6, 8), nn.Linear(10, 10), skip

    def forward(self, x: Tensor) -> Tensor:
        x = self.lift(x)
        mixed = self.mix(torch.relu(x.transpose(1, 2))).transpose(1, 2)
        return x + mixed if self.skip else mixed


def swapped(x: Tensor) -> Tensor:
    return x.transpose(1, -1)


LAYERS = [
    (nn.Linear(6, 8), nn.BatchNorm1d(10), 2),
    (nn.Linear(6, 8, bias=False), nn.LayerNorm(8), 2),
    (nn.Conv1d(10, 12, 3, padding=1), nn.LayerNorm(6), 1),
    (nn.Sequential(nn.Conv1d(10, 12, 3, padding=1), nn.GELU()), nn.BatchNorm1d(12), 1),
    (nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.ReLU()), nn.LayerNorm([10, 8]), 2),
    (Mixer(skip=True), nn.LayerNorm(8), 2),
    (Mixer(skip=False), nn.LayerNorm(8), 2),
]


@pytest.mark.parametrize(("layer", "norm", "axis"), LAYERS)
def test_the_axis_of_the_features_is_found(layer: nn.Module, norm: nn.Module, axis: int):
    found = normalized_input(norm(layer(X)).grad_fn)
    assert found == (3, axis)


def test_features_that_were_moved_are_followed():
    norm = nn.BatchNorm1d(8)
    moved = nn.Linear(6, 8)(X).permute(0, 2, 1)
    assert normalized_input(norm(moved).grad_fn) == (3, 1)
    assert normalized_input(swapped(norm(moved)).grad_fn) == (3, 1)


def test_words_have_their_features_on_the_last_axis():
    words = nn.Embedding(5, 8)(torch.zeros(4, 10, dtype=torch.long))
    assert normalized_input(nn.LayerNorm(8)(words).grad_fn) == (3, 2)


def test_nothing_is_said_where_it_is_not_clear():
    lifted = nn.Linear(6, 8)(X)
    reshaped = lifted.reshape(4, 8, 10)
    assert normalized_input(nn.BatchNorm1d(8)(reshaped).grad_fn) is None
    disagreeing = lifted + swapped(nn.Linear(6, 10)(torch.randn(4, 8, 6)))
    assert normalized_input(nn.LayerNorm(8)(disagreeing).grad_fn) is None
    assert normalized_input(nn.LayerNorm(6)(X).grad_fn) is None
    assert normalized_input(lifted.grad_fn) is None
    assert normalized_input(None) is None


def measure(net: nn.Module, x: Tensor):
    with watched() as recording:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            net(x).square().mean().backward()
            optimizer.step()
    return recording


def test_axes_and_groups_are_written_in_the_first_two_steps():
    recording = measure(nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(10), nn.LayerNorm(8)), X)
    assert recording.values("norm.feature_axis", "1") == [2, 2]
    assert recording.values("norm.own_axis", "1") == [1, 1]
    assert recording.values("norm.own_axis", "2") == [2, 2]
    assert recording.values("norm.group", "1") == [4 * 8, 4 * 8]
    assert recording.values("norm.group", "2") == [8, 8]


@pytest.mark.parametrize(
    ("norm", "group"),
    [
        (nn.GroupNorm(4, 8), 2 * 5),
        (nn.GroupNorm(8, 8), 5),
        (nn.InstanceNorm1d(8), 5),
        (nn.RMSNorm(5), 5),
        (nn.BatchNorm1d(8).eval(), None),
    ],
)
def test_groups_are_counted_by_kind(norm: nn.Module, group: int | None):
    recording = measure(nn.Sequential(nn.Conv1d(6, 8, 1), norm), torch.randn(4, 6, 5))
    assert recording.values("norm.group", "1") == ([] if group is None else [group, group])
