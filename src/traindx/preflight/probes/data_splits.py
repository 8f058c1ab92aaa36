"""Probe: do the data of training and validation overlap, and were they scaled together?"""

from __future__ import annotations

import hashlib
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from torch.utils.data import ConcatDataset, Subset, TensorDataset

from traindx.messages import say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.probe import STEP, observed, probe
from traindx.records import Item, Scalar, Site
from traindx.stats.memory import in_numpy

_MOST = 60_000
"""Samples of a split that are looked at."""
_SECONDS = 0.5
"""For what is read through `__getitem__`, of each split."""
_A_SECOND = 1.7e-8
"""Seconds for an element of tensors."""
_ELEMENTS = 256
"""Elements of a sample by which it is told from others, evenly spaced."""
_BLOCK = 4096
"""Samples that are widened to float64 at once."""
_STANDARD = 1e-3
"""Distance from zero mean and unit deviation that is still rounding, of half types too."""
_ROUNDING = 1e-7
"""What sums in float32 leave of it."""
_TRAINING = re.compile(r"train", re.IGNORECASE)


class _Split(NamedTuple):
    """Some samples of a data set.

    Attributes:
        marks: A hash of each.
        inputs: Their inputs as rows; None if they are not all of one shape.
        whole: Whether these are all of its samples.
    """

    marks: list[bytes]
    inputs: Tensor | None
    whole: bool


def _seconds(case: Case) -> float:
    """About what reading takes: of tensors by their elements, else as long as it may."""
    loaders = [case.loaders.training, *case.loaders.others.values()]
    sizes = [_elements(getattr(loader, "dataset", None)) for loader in loaders]
    return sum(_SECONDS if size is None else size * _A_SECOND for size in sizes)


def _elements(dataset: Any) -> int | None:
    """Elements of a data set of tensors; None of another one."""
    if type(dataset) is TensorDataset:
        return dataset.tensors[0].numel()
    if type(dataset) is Subset:
        whole = _elements(cast(Any, dataset).dataset)
        inner = len(cast(Any, dataset).dataset)
        return None if whole is None else whole * len(cast(Any, dataset)) // max(1, inner)
    return None


@probe(
    needs=("loaders",),
    writes=("probe.overlap", "probe.joint_scaling"),
    passes=0.0,
    seconds=_seconds,
)
def data_splits(case: Case) -> Iterator[Item]:
    """Samples that validation shares with training, and statistics that were taken of both."""
    own = getattr(case.loaders.training, "dataset", None)
    others = {
        name: getattr(loader, "dataset", None)
        for name, loader in case.loaders.others.items()
        if not _TRAINING.search(name)
    }
    if not others:
        raise DoesNotApplyError(say("no loader besides that of training is visible"))
    training = _split(own)
    if training is None:
        raise DoesNotApplyError(
            say("the training data cannot be read by place, or change each time")
        )
    splits = {name: found for name, dataset in others.items() if (found := _split(dataset))}
    if not splits:
        raise DoesNotApplyError(say("the other data cannot be read by place, or change each time"))
    known = set(training.marks)
    repeated = 1 - len(known) / len(training.marks)
    for name, split in splits.items():
        shared = sum(mark in known for mark in split.marks) / len(split.marks)
        site = Site(case.name, name)
        yield Scalar(STEP, "probe.overlap", shared, site)
        yield observed(
            "data-splits",
            site,
            samples=len(split.marks),
            training=len(training.marks),
            repeated=repeated,
            same_object=others[name] is own,
            complete=training.whole and split.whole,
        )
        joint = _joint_scaling(training, split)
        if joint is not None:
            yield Scalar(STEP, "probe.joint_scaling", joint, site)


# -- reading ---------------------------------------------------------------------------------------


def _split(dataset: Any) -> _Split | None:
    """Some samples; None if they cannot be read by their place, or differ from time to time."""
    inputs = _tensor(dataset)
    if inputs is not None:
        rows = _rows(inputs)
        return None if not len(rows) else _Split(_marks(rows), rows, len(inputs) == len(rows))
    try:
        count = len(dataset)
        if not count or _differs(dataset[0], dataset[0]):
            return None
        return _read(dataset, count)
    except Exception:  # of the user's data set, whatever it is
        return None


def _tensor(dataset: Any) -> Tensor | None:
    """The inputs of a data set of tensors, without reading it sample by sample."""
    if type(dataset) is TensorDataset:
        return dataset.tensors[0]
    if type(dataset) is Subset:
        inner = _tensor(cast(Any, dataset).dataset)
        return None if inner is None else inner[torch.as_tensor(list(cast(Any, dataset).indices))]
    if type(dataset) is ConcatDataset:
        parts = [_tensor(part) for part in cast(Any, dataset).datasets]
        tensors = [part for part in parts if part is not None]
        alike = len({(part.shape[1:], part.dtype) for part in tensors}) == 1
        return torch.cat(tensors) if len(tensors) == len(parts) and alike else None
    return None


def _rows(inputs: Tensor) -> Tensor:
    some = inputs.detach()[:_MOST].cpu()
    return some.flatten(1) if some.dim() > 1 else some[:, None]


def _marks(rows: Tensor) -> list[bytes]:
    some = rows[:, :: max(1, rows.shape[1] // _ELEMENTS)].contiguous()
    data = in_numpy(some.view(torch.uint8))
    return [hashlib.blake2b(row.tobytes(), digest_size=8).digest() for row in data]


def _differs(a: object, b: object) -> bool:
    one, other = _row(a), _row(b)
    return one is None or other is None or _marks(one) != _marks(other)


def _row(sample: Any) -> Tensor | None:
    """What a model is given of a sample, as a row: the first of several that holds numbers.

    A single number is a label, and passed over; a dictionary's values count together.
    """
    parts = list(cast("Sequence[Any]", sample)) if isinstance(sample, tuple | list) else [sample]
    for part in parts:
        values = (
            list(cast("Mapping[Any, Any]", part).values()) if isinstance(part, Mapping) else [part]
        )
        found = [row for value in values if (row := _numbers(value)) is not None]
        if found:
            return found[0] if len(found) == 1 else torch.cat([row.double() for row in found], 1)
    return None


def _numbers(value: Any) -> Tensor | None:
    """A tensor, an array or an image as a row; None of anything else."""
    if isinstance(value, str | bytes | int | float):
        return None
    try:
        tensor = (
            value.detach().cpu() if isinstance(value, Tensor) else torch.as_tensor(_array(value))
        )
    except (TypeError, ValueError, RuntimeError):
        return None
    return tensor.reshape(1, -1).contiguous() if tensor.numel() > 1 else None


def _array(value: Any) -> Any:
    """An image's pixels; others are taken as they are."""
    return list(value.getdata()) if hasattr(value, "getdata") else value


def _read(dataset: Any, count: int) -> _Split | None:
    """Samples read one by one, as many as there is time for, from all over the data set."""
    marks: list[bytes] = []
    rows: list[Tensor] = []
    generator = torch.Generator().manual_seed(0)
    order = cast("list[int]", cast(Any, torch.randperm(count, generator=generator)).tolist())
    began = time.perf_counter()
    for place in order[:_MOST]:
        row = _row(dataset[place])
        if row is None:
            return None
        marks += _marks(row)
        rows.append(row)
        if time.perf_counter() - began > _SECONDS:
            break
    alike = len({(row.shape, row.dtype) for row in rows}) == 1
    return _Split(marks, torch.cat(rows) if alike else None, len(marks) == count)


# -- scaling ---------------------------------------------------------------------------------------


class _Moments(NamedTuple):
    """Number of samples, sum and sum of squares of each feature, in float64."""

    samples: int
    sums: Tensor
    squares: Tensor

    @classmethod
    def of(cls, rows: Tensor) -> _Moments:
        sums = torch.zeros(rows.shape[1], dtype=torch.float64)
        squares = torch.zeros_like(sums)
        for start in range(0, len(rows), _BLOCK):
            values = rows[start : start + _BLOCK].double()
            sums += values.sum(0)
            squares += values.square_().sum(0)
        return cls(len(rows), sums, squares)

    def with_those_of(self, other: _Moments) -> _Moments:
        """Of both together."""
        return _Moments(
            self.samples + other.samples, self.sums + other.sums, self.squares + other.squares
        )

    def of_all_features(self) -> _Moments:
        """As if each element were a sample of one feature."""
        features = len(self.sums)
        return _Moments(self.samples * features, self.sums.sum()[None], self.squares.sum()[None])

    def from_standard(self) -> float:
        """The greatest distance of a feature's mean from 0 and deviation from 1; constants aside.

        The deviation is that of n or of n - 1, whichever fits.
        """
        mean = self.sums / self.samples
        std = (self.squares / self.samples - mean.square()).clamp_min(0).sqrt()
        used = std > 1e-6
        if not bool(used.any()):
            return math.inf
        mean, std = mean[used].abs(), std[used]
        unbiased = std * math.sqrt(self.samples / (self.samples - 1))
        return float(
            torch.maximum(mean, torch.minimum((std - 1).abs(), (unbiased - 1).abs())).max()
        )


def _joint_scaling(training: _Split, other: _Split) -> float | None:
    """How much nearer to zero mean and unit deviation both splits together are than training.

    A ratio of the distances, per feature or of all together, whichever is greater. None where not
    all samples were read, or they are no real numbers.
    """
    a, b = training.inputs, other.inputs
    if a is None or b is None or a.shape[1] != b.shape[1] or not (training.whole and other.whole):
        return None
    if not (a.is_floating_point() and b.is_floating_point()) or min(len(a), len(b)) < 2:
        return None
    if a.data_ptr() == b.data_ptr():
        return None
    alone = _Moments.of(a)
    both = alone.with_those_of(_Moments.of(b))
    return max(_nearer(alone, both), _nearer(alone.of_all_features(), both.of_all_features()))


def _nearer(alone: _Moments, both: _Moments) -> float:
    distance = both.from_standard()
    return alone.from_standard() / max(distance, _ROUNDING) if distance < _STANDARD else 0.0
