"""The first layer's weights: arranged as pictures, bounded, and as they are at a training's end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import traindx
from traindx.capture.first_weights import NUMBERS, first_weights
from traindx.records import Event, Item, Vector


def looked(*layers: nn.Module, sample: tuple[int, ...] = ()) -> list[Item]:
    named = [(str(i), layer) for i, layer in enumerate(layers)]
    return first_weights("net", named, sample, -1)


def told(items: list[Item]) -> tuple[Vector, dict[str, Any]]:
    vector, event = items
    assert isinstance(vector, Vector)
    assert isinstance(event, Event)
    assert vector.site == event.site
    return vector, event.detail


@pytest.mark.parametrize(
    ("layer", "sample", "kind", "shape"),
    [
        (nn.Conv2d(3, 8, 5), (), "filters", [8, 3, 5, 5]),
        (nn.Conv2d(1, 100, 3), (), "filters", [64, 1, 3, 3]),
        (nn.Conv2d(12, 4, 3), (), "channels", [4, 8, 3, 3]),
        (nn.Conv2d(3, 2, 40), (), "filters", [2, 3, 32, 32]),
        (nn.Conv3d(1, 4, (5, 3, 3)), (), "filters", [4, 1, 3, 3]),
        (nn.Conv1d(6, 4, 9), (), "signals", [4, 1, 6, 9]),
        (nn.Linear(12, 5), (1, 3, 4), "rows", [5, 1, 3, 4]),
        (nn.Linear(12, 5), (3, 4), "rows", [5, 1, 3, 4]),
        (nn.Linear(12, 5), (2, 2, 3), "rows", [5, 3, 2, 2]),
        (nn.Linear(12, 5), (12,), "matrix", [5, 1, 1, 12]),
        (nn.Linear(12, 5), (5, 2, 2), "matrix", [5, 1, 1, 12]),
        (nn.Linear(3 * 32 * 32, 100), (3, 32, 32), "rows", [16, 3, 32, 32]),
        (nn.Linear(3 * 224 * 224, 10), (3, 224, 224), "rows", [10, 3, 32, 32]),
    ],
)
def test_weights_are_arranged_by_what_they_are_given(
    layer: nn.Module, sample: tuple[int, ...], kind: str, shape: list[int]
) -> None:
    vector, detail = told(looked(nn.Flatten(), layer, nn.Linear(2, 2), sample=sample))
    assert (vector.site.fqn, detail["kind"], detail["shape"]) == ("1", kind, shape)
    assert len(vector.values) == torch.Size(shape).numel() <= NUMBERS


def test_the_numbers_are_the_weights() -> None:
    layer = nn.Linear(12, 5)
    vector, _ = told(looked(layer, sample=(2, 2, 3)))  # channels last
    images = torch.tensor(vector.values).reshape(5, 3, 2, 2).permute(0, 2, 3, 1)
    assert torch.equal(images.reshape(5, 12), layer.weight.detach())


def test_a_weight_that_is_computed_is_left_alone() -> None:
    layer = nn.utils.parametrizations.spectral_norm(nn.Linear(12, 5))
    before = {name: buffer.clone() for name, buffer in layer.named_buffers()}
    assert looked(layer) == []
    assert all(torch.equal(before[name], buffer) for name, buffer in layer.named_buffers())
    with torch.device("meta"):
        assert looked(nn.Linear(3, 3)) == []


def trained(folder: Path, *, first_weights: bool | None = None) -> tuple[traindx.Run, torch.Tensor]:
    """A run whose model is gone by its end, and the weights that it had."""
    torch.manual_seed(0)
    first = nn.Linear(12, 8)
    net = nn.Sequential(nn.Flatten(), first, nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(16, 1, 3, 4), torch.randint(0, 3, (16,))
    watch = traindx.watch(net, optimizer, folder=folder, first_weights=first_weights)
    for _ in range(12):
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    last = first.weight.detach().clone()
    del net, first, optimizer
    return watch.close(), last


def test_a_run_holds_the_first_layer_as_it_is_at_the_end(tmp_path: Path) -> None:
    run, last = trained(tmp_path)
    assert run.path is not None
    for found in (run, traindx.Run.load(run.path)):
        ((site, vectors),) = found.vectors("first_layer.weights").items()
        assert (site.fqn, len(vectors)) == ("1", 1)
        assert [*vectors[0].values] == last.reshape(-1).tolist()


def test_a_run_holds_no_weights_where_none_are_wanted(tmp_path: Path) -> None:
    run, _ = trained(tmp_path, first_weights=False)
    assert run.path is not None
    assert not run.vectors("first_layer.weights")
    assert not traindx.Run.load(run.path).vectors("first_layer.weights")
