"""The way of numbers from a device to the host: one copy a device and step, which nobody awaits.

A step's numbers are packed into one tensor on their device, and the copy of it into pinned memory
is queued behind the kernels that compute them. The training goes on; the host looks at the copy a
measured step later, when it has long arrived. Numbers on the CPU are read at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, cast

import torch
from torch import Tensor

from traindx.records import Item

_CUDA = torch.backends.cuda.is_built()

Numbers = list[float]
Lists = list[tuple[float, ...]]


class Copy(Protocol):
    """A copy to the host that is under way."""

    def done(self) -> bool:
        """Whether it has arrived; never waits."""
        ...

    def numbers(self) -> Numbers:
        """What has arrived, once; waits for it if need be."""
        ...


class Host(Protocol):
    """What knows which tensors the host can read at once, and how it gets at the others.

    Capture reads no device but through this, so a test can take the CPU for a device and see every
    time that somebody would have waited for one.
    """

    def at_hand(self, tensor: Tensor) -> bool:
        """Whether reading it waits for nothing."""
        ...

    def fetch(self, packed: Tensor) -> Copy:
        """Begin to copy a one-dimensional tensor of our own from its device; waits for nothing."""
        ...

    def capturing(self) -> bool:
        """Whether what the caller does on a device becomes a part of a CUDA graph."""
        ...


class TorchHost:
    """The host as it is.

    A copy is queued on the stream that is the current one of the device at the end of the step,
    which is the one that the optimizer's step runs on. What a program computes on another stream
    and never joins with this one may be read too early, and then a number in the run is wrong; the
    training is not.
    """

    def __init__(self) -> None:
        self._spare: list[Tensor] = []

    def at_hand(self, tensor: Tensor) -> bool:
        """Whether it is on the CPU."""
        return tensor.is_cpu

    def fetch(self, packed: Tensor) -> Copy:
        """Queue a copy into pinned memory; only CUDA's devices (ROCm's, too) have that here."""
        return _Pinned(packed, self._spare) if packed.is_cuda else _Late(packed)

    def capturing(self) -> bool:
        """Whether the current stream of a CUDA device is being captured."""
        # To ask would initialize CUDA, after which a program cannot fork workers that use it.
        return _CUDA and torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


class _Pinned:
    """A copy into pinned memory, and the event behind it in the device's queue.

    `packed` may be freed at once: its memory is given again only to what is queued after the copy.
    The pinned memory goes back to `spare` once it has been read, and is kept from step to step: to
    get more of it makes the driver wait.
    """

    def __init__(self, packed: Tensor, spare: list[Tensor]) -> None:
        self._spare = spare
        self._size = packed.numel()
        self._memory = _pinned(self._size, spare)
        self._memory[: self._size].copy_(packed, non_blocking=True)
        events: Any = torch.cuda
        self._event = events.Event()
        self._event.record(events.current_stream(packed.device))

    def done(self) -> bool:
        return self._event.query()

    def numbers(self) -> Numbers:
        self._event.synchronize()
        numbers = _plain(self._memory[: self._size])
        self._spare.append(self._memory)
        return numbers


def _pinned(size: int, spare: list[Tensor]) -> Tensor:
    """Pinned float64 memory for so many numbers, of the spare if it is large enough."""
    if spare and (memory := spare.pop()).numel() >= size:
        return memory
    room = 1 << max(10, (size - 1).bit_length())
    return torch.empty(room, dtype=torch.float64, device="cpu", pin_memory=True)


class _Late:
    """A tensor that stays on its device until it is read, which then waits for the device."""

    def __init__(self, packed: Tensor) -> None:
        self._packed = packed

    def done(self) -> bool:
        return False

    def numbers(self) -> Numbers:
        return _plain(self._packed)


@dataclass(frozen=True, slots=True)
class Unread:
    """Numbers that may still be on a device, and what becomes of them.

    Attributes:
        values: Numbers and zero-dimensional tensors of our own, in any mixture of devices.
        lists: One-dimensional tensors of our own.
        items: Makes the items of the two, once they are plain numbers.
    """

    values: list[float | Tensor]
    lists: list[Tensor]
    items: Callable[[Numbers, Lists], Iterable[Item]]

    @property
    def plain(self) -> bool:
        """Whether there are only plain numbers, which nobody need read."""
        return not self.lists and {*map(type, self.values)} <= _FLOAT


_FLOAT = {float}

Part = Item | Unread


class Portion:
    """What is written at one time: items, and numbers yet to become some, in their order.

    Numbers on the host are read now, and what is on a device is then on its way: tensors are held
    no longer than that. The items are made when they are asked for, which costs half as much among
    others as between two steps of a training.

    Args:
        parts: What to write.
        host: Where to.
    """

    def __init__(self, parts: list[Part], host: Host) -> None:
        self._parts: list[Part | _Waiting] = [*parts]
        self._arrival: Arrival | None = None
        unread = [part for part in parts if type(part) is Unread]
        if not [part for part in unread if not part.plain]:  # nothing to bring over
            return
        values = [value for part in unread for value in part.values]
        lists = [it for part in unread for it in part.lists]
        self._arrival = Arrival(values, lists, host)
        self._parts = [_Waiting.of(part) if type(part) is Unread else part for part in parts]

    def __bool__(self) -> bool:
        return bool(self._parts)

    def append(self, *items: Item) -> None:
        """Add items at its end."""
        self._parts.extend(items)

    def done(self) -> bool:
        """Whether all numbers have arrived; never waits."""
        return self._arrival is None or self._arrival.done()

    def read(self) -> None:
        """Read the numbers; waits for them if need be."""
        if self._arrival is not None:
            self._arrival.read()

    def items(self) -> list[Item]:
        """All items; waits for the numbers if need be."""
        return [*self._made()]

    def items_without_numbers(self) -> list[Item]:
        """Those that need no number from a device, for when the device has failed."""
        return [part for part in self._parts if not isinstance(part, _Waiting | Unread)]

    def _made(self) -> Iterator[Item]:
        numbers, lists = ([], []) if self._arrival is None else self._arrival.read()
        values, several = iter(numbers), iter(lists)
        for part in self._parts:
            if isinstance(part, _Waiting):
                own = [*islice(values, part.num_values)]
                yield from part.items(own, [*islice(several, part.num_lists)])
            elif isinstance(part, Unread):
                yield from part.items(cast(Numbers, part.values), [])
            else:
                yield part


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An `Unread` without its tensors."""

    num_values: int
    num_lists: int
    items: Callable[[Numbers, Lists], Iterable[Item]]

    @classmethod
    def of(cls, unread: Unread) -> _Waiting:
        return cls(len(unread.values), len(unread.lists), unread.items)


@dataclass(slots=True)
class _Group:
    """The tensors of one device and type, by their places among all."""

    singles: list[int]
    several: list[int]


class Arrival:
    """Numbers and tensors, as plain numbers: at once from the host, later from devices."""

    def __init__(self, values: list[float | Tensor], lists: list[Tensor], host: Host) -> None:
        self._numbers = cast(Numbers, [*values])
        self._lists: Lists = [()] * len(lists)
        self._sizes = [tensor.numel() for tensor in lists]
        self._copies: list[tuple[Copy, list[_Group]]] = []
        far: dict[torch.device, list[tuple[Tensor, _Group]]] = {}
        for (device, _), group in _groups(values, lists).items():
            joined = _joined(group, values, lists)
            if host.at_hand(joined):
                self._place(iter(_plain(joined)), group)
            else:
                far.setdefault(device, []).append((joined, group))
                for i in group.singles:  # hold no tensor
                    self._numbers[i] = 0.0
        for pairs in far.values():
            packed = _packed([joined for joined, _ in pairs])
            self._copies.append((host.fetch(packed), [group for _, group in pairs]))

    def done(self) -> bool:
        """Whether all are here; never waits."""
        return all(copy.done() for copy, _ in self._copies)

    def read(self) -> tuple[Numbers, Lists]:
        """All of them, each in its place; waits if need be."""
        for copy, groups in self._copies:
            numbers = iter(copy.numbers())
            for group in groups:
                self._place(numbers, group)
        self._copies = []
        return self._numbers, self._lists

    def _place(self, numbers: Iterator[float], group: _Group) -> None:
        for i in group.singles:
            self._numbers[i] = next(numbers)
        for i in group.several:
            self._lists[i] = tuple(islice(numbers, self._sizes[i]))


def _groups(
    values: list[float | Tensor], lists: list[Tensor]
) -> dict[tuple[torch.device, torch.dtype], _Group]:
    groups: dict[tuple[torch.device, torch.dtype], _Group] = {}

    def group_of(tensor: Tensor) -> _Group:
        key = (tensor.device, tensor.dtype)
        if key not in groups:
            groups[key] = _Group([], [])
        return groups[key]

    for i, value in enumerate(values):
        if type(value) is not float and isinstance(value, Tensor):
            group_of(value).singles.append(i)
    for i, tensor in enumerate(lists):
        group_of(tensor).several.append(i)
    return groups


def _joined(group: _Group, values: list[float | Tensor], lists: list[Tensor]) -> Tensor:
    """The numbers of a group, one after another."""
    singles = [cast(Tensor, values[i]) for i in group.singles]
    parts = [*([torch.stack(singles)] if singles else []), *(lists[i] for i in group.several)]
    return torch.cat(parts) if len(parts) > 1 else parts[0]


def _packed(tensors: list[Tensor]) -> Tensor:
    """Tensors of one device as one, of a type that holds every count exactly."""
    # Apple's devices have no float64; what is counted there is a sample of few thousand elements.
    wide = torch.float32 if tensors[0].device.type == "mps" else torch.float64
    return torch.cat([tensor.to(wide) for tensor in tensors])


def _plain(tensor: Tensor) -> Numbers:
    numbers: list[float] = cast(Any, tensor).tolist()
    return [*map(float, numbers)]


def to_device(numbers: Sequence[float], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Numbers as a tensor on a device, (n,), which nobody waits for.

    From memory that is not pinned, as `torch.tensor(numbers, device=...)` copies, CUDA would wait.
    """
    pinned = device.type == "cuda"
    tensor = torch.tensor(numbers, dtype=dtype, device="cpu", pin_memory=pinned)
    return tensor if device.type == "cpu" else tensor.to(device, non_blocking=True)
