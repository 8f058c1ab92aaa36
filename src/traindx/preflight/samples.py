"""Some of the samples of a batch: rows, columns of what has time first, bags and packed sequences.

Legend: N samples, T positions, H and W of a picture.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate, pairwise
from operator import mul
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from traindx.preflight.structures import like, named_tensors, once


def size_of(
    given: Any, targets: Sequence[Tensor], axis: int, *, closed: bool = False
) -> int | None:
    """How many samples there are: as an argument says, the one that a target agrees with.

    Without such a target, the first argument; None if there is none.

    Args:
        given: The arguments.
        targets: What the loss takes besides the output.
        axis: Where arguments of two and more axes have their samples.
        closed: Whether offsets of bags may have their end after them.
    """
    packed = [int(pack.batch_sizes[0]) for pack in packs(given)]
    loose = [t for t in loose_tensors(given) if t.dim()]
    rows = [*packed, *(t.shape[axis if t.dim() > axis else 0] for t in loose)]
    ends = [t.shape[0] - 1 for t in loose if closed and t.dim() == 1]
    agreed = [t.shape[0] for t in targets if t.dim() and t.shape[0] in (*rows, *ends)]
    return next(iter([*(() if axis else agreed), *rows]), None)


def packs(value: Any) -> list[PackedSequence]:
    """The packed sequences in some arguments."""
    found: list[PackedSequence] = []
    waiting = [value]
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, PackedSequence):
            found.append(one)
        elif isinstance(one, list | tuple):
            waiting += cast("Sequence[Any]", one)
        elif isinstance(one, dict):
            waiting += cast("dict[Any, Any]", one).values()
    return found


def loose_tensors(value: Any) -> list[Tensor]:
    """The tensors in some arguments that are no parts of packed sequences."""
    inside = {id(t) for pack in packs(value) for t in pack if t is not None}
    return [t for _, t in named_tensors(value) if id(t) not in inside]


class Bag(NamedTuple):
    """Bags of words one after another, as `nn.EmbeddingBag` takes them.

    Attributes:
        values: The words of all bags.
        offsets: Where each begins.
        closed: Whether the last offset is the end.
    """

    values: Tensor
    offsets: Tensor
    closed: bool

    def take(self, index: Tensor) -> Bag:
        """Some of the bags, one after another."""
        offsets = self.offsets if self.closed else _with_end(self.offsets, len(self.values))
        begins: list[int] = cast(Any, offsets).tolist()  # copied from the device
        each = [self.values[begin:end] for begin, end in pairwise(begins)]
        some = [each[int(i)] for i in index]
        ends = torch.tensor([0, *(len(one) for one in some)]).cumsum(0).to(self.offsets)
        return Bag(torch.cat(some), ends if self.closed else ends[:-1], self.closed)


def _with_end(offsets: Tensor, end: int) -> Tensor:
    return torch.cat([offsets, offsets.new_tensor([end])])


def has_closed_bags(model: nn.Module) -> bool:
    """Whether an `nn.EmbeddingBag` of a model wants the end after its offsets."""
    return any(isinstance(m, nn.EmbeddingBag) and m.include_last_offset for m in model.modules())


def bag_of(model: nn.Module, given: Any, size: int) -> Bag | None:
    """The bags among the arguments of a model that has an `nn.EmbeddingBag`; None if none."""
    bags = [module for module in model.modules() if isinstance(module, nn.EmbeddingBag)]
    flat = [t for t in loose_tensors(given) if t.dim() == 1 and _is_integer(t)]
    for closed in {bag.include_last_offset for bag in bags}:
        for offsets in flat:
            if len(offsets) != size + closed or int(offsets[0]) or bool((offsets.diff() < 0).any()):
                continue
            for values in flat:
                end = int(offsets[-1])
                if values is not offsets and (end == len(values) if closed else end <= len(values)):
                    return Bag(values, offsets, closed)
    return None


def _is_integer(tensor: Tensor) -> bool:
    return not tensor.is_floating_point() and not tensor.is_complex() and tensor.numel() > 0


def positions(given: Sequence[Tensor], size: int) -> frozenset[int]:
    """How many positions a sample may have: T of an argument [N, T, …], H and HW of [N, H, W, …].

    A target of N times as many rows was flattened before the loss was given it.
    """
    rows = (tensor.shape[1:] for tensor in given if tensor.dim() > 1 and tensor.shape[0] == size)
    return frozenset(count for shape in rows for count in accumulate(shape, mul) if count > 1)


class Taking:
    """Takes some samples of each tensor that has them.

    Args:
        index: Their places.
        size: N.
        axis: Where tensors of two and more axes have their samples: 0, or 1 after time.
        steps: T, if time comes first; 0 else.
        bag: Bags of words, if there are some.
        each: How many positions a sample may have, as `positions` says.
    """

    def __init__(
        self,
        index: Tensor,
        size: int,
        axis: int = 0,
        steps: int = 0,
        bag: Bag | None = None,
        each: Collection[int] = (),
    ) -> None:
        self._index = index
        self._size = size
        self._axis = axis
        self._steps = steps
        self._each = each
        self._bags: dict[int, Tensor] = {}
        if bag is not None:
            some = bag.take(index)
            self._bags = {id(bag.values): some.values, id(bag.offsets): some.offsets}
        self._of = once(self._taken)

    def fits(self, tensor: Tensor) -> bool:
        """Whether a tensor of the arguments has every sample once, or is the same for all."""
        if tensor.layout is not torch.strided:  # a sparse matrix of a graph has no rows to take
            return False
        if id(tensor) in self._bags or not tensor.dim() or tensor.shape[0] in (1, self._size):
            return True
        if tensor.dim() == 2 and tensor.shape[0] == tensor.shape[1]:  # maybe a mask of positions
            return True
        return bool(self._axis) and tensor.dim() > 1 and tensor.shape[1] == self._size

    def packed(self, pack: PackedSequence) -> PackedSequence:
        """Some of the sequences of a pack."""
        padded, lengths = pad_packed_sequence(pack, batch_first=True)
        index = self._index.to(padded.device)
        some = lengths[self._index.cpu()]
        return pack_padded_sequence(padded[index], some, batch_first=True, enforce_sorted=False)

    def __call__(self, tensor: Tensor) -> Tensor:
        """Some samples of a tensor; the tensor itself if it has none."""
        return self._of(tensor)

    def _taken(self, tensor: Tensor) -> Tensor:
        if id(tensor) in self._bags:
            return self._bags[id(tensor)]
        if isinstance(tensor, nn.Parameter) or not tensor.dim():
            return tensor
        index, own = self._index.to(tensor.device), tensor.detach()
        if self._axis and tensor.dim() > 1 and tensor.shape[1] == self._size:
            return like(own[:, index], tensor)
        if tensor.shape[0] == self._size:
            return like(own[index], tensor)
        return next(self._flattened(own, tensor, index), tensor)

    def _flattened(self, own: Tensor, tensor: Tensor, index: Tensor) -> Iterator[Tensor]:
        """Of samples whose rows stand one after another, or of steps whose samples do."""
        if self._steps and tensor.shape[0] == self._steps * self._size:
            yield own.reshape(self._steps, self._size, *own.shape[1:])[:, index].flatten(0, 1)
        times, rest = divmod(tensor.shape[0], self._size)
        if times and not rest and (times in self._each or self._is_view_of_samples(tensor)):
            yield own.reshape(self._size, times, *own.shape[1:])[index].flatten(0, 1)

    def _is_view_of_samples(self, tensor: Tensor) -> bool:
        base = tensor._base
        of_samples = base is not None and base.dim() > 0 and base.shape[0] == self._size
        return of_samples and tensor.is_contiguous()
