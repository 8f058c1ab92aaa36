"""Passes over the data: how far they come, and whether they begin with the same batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, TensorDataset
from torch.utils.data.dataloader import (
    _BaseDataLoaderIter,  # pyright: ignore[reportPrivateUsage]
)

from tests.capture.watched import Recording, mlp, watched


def data(samples: int = 40) -> TensorDataset:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(samples, 6, generator=generator)
    return TensorDataset(x, torch.randint(3, (samples,), generator=generator))


def trained(batches: Callable[[], Iterator[Any]]) -> Recording:
    with watched() as recording:
        net = mlp(sizes=(6, 8, 3))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for x, y in batches():
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()
    return recording


def last(recording: Recording) -> dict[str, float]:
    names = ("passes", "repeats", "reached", "batches")
    return {name: recording.series(f"data.{name}").last for name in names}


def test_the_first_batch_again_and_again_is_told():
    loader = DataLoader(data(), batch_size=4)
    recording = trained(lambda: (next(iter(loader)) for _ in range(9)))
    assert last(recording) == {"passes": 9, "repeats": 8, "reached": 0.1, "batches": 9}


def test_whole_passes_come_to_the_end():
    loader = DataLoader(data(), batch_size=8)
    recording = trained(lambda: (batch for _ in range(2) for batch in loader))
    assert last(recording) == {"passes": 2, "repeats": 1, "reached": 1, "batches": 10}


def test_passes_of_a_loader_that_shuffles_begin_with_another_batch_each():
    torch.manual_seed(0)
    loader = DataLoader(data(), batch_size=4, shuffle=True)
    recording = trained(lambda: (next(iter(loader)) for _ in range(9)))
    assert last(recording) == {"passes": 9, "repeats": 0, "reached": 0.1, "batches": 9}


def test_a_new_loader_of_the_same_data_is_one_more_pass():
    recording = trained(
        lambda: (batch for _ in range(3) for batch in islice(DataLoader(SAME, 10), 2))
    )
    assert last(recording) == {"passes": 3, "repeats": 2, "reached": 0.5, "batches": 6}


SAME = data()


class Stream(IterableDataset[tuple[Tensor, Tensor]]):
    def __init__(self, samples: int) -> None:
        self.samples = samples

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        generator = torch.Generator().manual_seed(0)
        for _ in range(self.samples):
            yield torch.randn(6, generator=generator), torch.tensor(1)


@pytest.mark.parametrize(("samples", "reached"), [(1000, 0.0), (8, 1.0)])
def test_a_stream_has_no_known_end_until_it_has_come(samples: int, reached: float):
    loader = DataLoader(Stream(samples), batch_size=4)
    recording = trained(lambda: (batch for _ in range(3) for batch in islice(loader, 3)))
    assert last(recording)["reached"] == reached
    assert last(recording)["repeats"] == 2


def test_validation_is_no_pass_of_the_training():
    loader, other = DataLoader(data(), batch_size=8), DataLoader(data(400), batch_size=2)

    def batches() -> Iterator[Any]:
        yield from loader
        with torch.no_grad():
            for _ in other:
                pass
        yield from loader

    assert last(trained(batches))["batches"] == 10


def test_nothing_is_left_on_the_loaders():
    before = _BaseDataLoaderIter.__next__
    trained(lambda: iter(DataLoader(data(), batch_size=8)))
    assert _BaseDataLoaderIter.__next__ is before
