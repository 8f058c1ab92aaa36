"""The training's inputs with their labels, row by row, in the order in which they are stored.

They are read from the loader's data set, or found among the program's tensors: those of which the
batch's rows are rows.

Legend: N samples of a batch, n rows of the data, F features.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from torch.utils.data import IterableDataset, Subset, TensorDataset

from traindx.preflight.case import Case
from traindx.preflight.structures import named_tensors

_MOST = 1000
"""Rows that are looked at, from the beginning."""
_TOLD = 16
"""Rows of a batch by which its data are known."""
_NUMBERS = 16
"""Of a label, at most."""
_SECONDS = 0.5
"""For rows that are read through `__getitem__`."""


class Pairs(NamedTuple):
    """Rows of the data.

    Attributes:
        inputs: (n, F) in float64.
        labels: (n, labels of a row) in float64.
        classes: Whether labels are whole numbers of one class each.
    """

    inputs: Tensor
    labels: Tensor
    classes: bool

    @classmethod
    def of(cls, inputs: Tensor, labels: Tensor) -> Pairs | None:
        """Of the first rows of both; None if they are no vectors of numbers with few labels."""
        real = inputs.is_floating_point() and not labels.is_complex()
        if not real or inputs.dim() < 2 or not labels.dim() or len(inputs) != len(labels):
            return None
        x = inputs.detach()[:_MOST].cpu().double().flatten(1)
        y = labels.detach()[:_MOST].cpu().double().reshape(len(x), -1)
        if not (0 < y.shape[1] <= _NUMBERS) or not x.shape[1]:
            return None
        if not (bool(x.isfinite().all()) and bool(y.isfinite().all())):
            return None
        classes = y.shape[1] == 1 and not labels.is_floating_point()
        return cls(x, y, classes)


def pairs_of(case: Case) -> Pairs | None:
    """The data of a case whose model is given one tensor; None if they are not found."""
    batch, targets = _batch(case)
    if batch is None:
        return None
    dataset = getattr(case.loaders.training, "dataset", None)
    if dataset is None:
        found = _among(case.loaders.tensors, batch, targets)
        return next((pairs for pairs, _ in found), None)
    pairs = _of_dataset(dataset)
    return pairs if pairs and any(_may_be(target, pairs) for target in targets) else None


def pairs_in_order(case: Case) -> Pairs | None:
    """The program's tensors, if the batch is some rows of them one after the other."""
    batch, targets = _batch(case)
    if batch is None:
        return None
    for pairs, places in _among(case.loaders.tensors, batch, targets):
        if len(places) > 1 and places == [*range(places[0], places[0] + len(places))]:
            return pairs
    return None


def _batch(case: Case) -> tuple[Tensor | None, list[Tensor]]:
    """The only tensor that a model is given, if it holds samples, and the targets of as many."""
    given = [t for _, t in named_tensors([list(case.args), dict(case.kwargs)])]
    size = case.batch_size
    if len(given) != 1 or not size or given[0].dim() < 2 or len(given[0]) != size:
        return None, []
    return given[0], [t for t in case.targets if t.dim() and len(t) == size]


def _may_be(target: Tensor, pairs: Pairs) -> bool:
    """Whether a batch's target may be made of such labels: a data set may hold some for others."""
    told = target.detach().reshape(len(target), -1).double().cpu()
    if told.shape[1] != pairs.labels.shape[1]:
        return False
    return not pairs.classes or bool(torch.isin(told, pairs.labels).all())


# -- a data set ------------------------------------------------------------------------------------


def _of_dataset(dataset: Any) -> Pairs | None:
    while type(dataset) is Subset:  # what was stored before it was split
        dataset = cast(Any, dataset).dataset
    if type(dataset) is TensorDataset:
        tensors = dataset.tensors
        return Pairs.of(tensors[0], tensors[-1]) if len(tensors) == 2 else None
    if isinstance(dataset, IterableDataset):
        return None
    try:
        return _read(dataset, len(dataset))
    except Exception:  # of the user's data set, whatever it is
        return None


def _read(dataset: Any, count: int) -> Pairs | None:
    """The first samples, as many as there is time for."""
    inputs: list[Tensor] = []
    labels: list[Tensor] = []
    began = time.perf_counter()
    for place in range(min(count, _MOST)):
        sample: Any = dataset[place]
        if not isinstance(sample, tuple | list) or len(cast("Sequence[Any]", sample)) != 2:
            return None
        inputs.append(torch.as_tensor(sample[0]))
        labels.append(torch.as_tensor(sample[1]))
        if time.perf_counter() - began > _SECONDS:
            break
    return Pairs.of(torch.stack(inputs), torch.stack(labels))


# -- the program's tensors -------------------------------------------------------------------------


def _among(
    tensors: Sequence[Tensor], batch: Tensor, targets: list[Tensor]
) -> Iterator[tuple[Pairs, list[int]]]:
    """Data of which the batch's rows are rows, with their labels, and where its first rows are."""
    rows = batch.detach()[:_TOLD]
    for inputs in tensors:
        alike = inputs.shape[1:] == batch.shape[1:] and inputs.dtype == batch.dtype
        if not alike or len(inputs) < len(batch) or inputs.device != batch.device:
            continue
        places = _places(inputs, rows)
        if places is None:
            continue
        for labels in tensors:
            if labels is inputs or len(labels) != len(inputs):
                continue
            if any(_same(labels, places, target) for target in targets):
                found = Pairs.of(inputs, labels)
                if found is not None:
                    yield found, places


def _places(inputs: Tensor, rows: Tensor) -> list[int] | None:
    """Where in the data the rows of a batch stand; None if one of them is not there."""
    data, wanted = inputs.detach().flatten(1), rows.flatten(1)
    column = int((wanted != wanted[:1]).sum(0).argmax())  # of few equal values
    found: list[int] = []
    for row in wanted:
        near = (data[:, column] == row[column]).nonzero().flatten()
        own = near[(data[near] == row).all(1)]
        if not len(own):
            return None
        found.append(int(own[0]))
    return found


def _same(labels: Tensor, places: list[int], target: Tensor) -> bool:
    """Whether the target's first rows are the labels at these places."""
    told = target.detach()[: len(places)].reshape(len(places), -1).double().cpu()
    held = labels.detach()[places].reshape(len(places), -1).double().cpu()
    return told.shape == held.shape and torch.equal(told, held)
