"""How numbers reach the host: in one copy a device, each in its place, and in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.capture.devices import PretendedHost
from traindx.capture import transfer
from traindx.capture.transfer import Arrival, Portion, TorchHost, Unread, to_device
from traindx.records import Event, EventKind, Item, Scalar

DTYPES = [torch.float32, torch.float64, torch.int64, torch.float16, torch.bool]


def arrived(values: list[float | Tensor], lists: list[Tensor], host: Any = None) -> Any:
    return Arrival(values, lists, host or TorchHost()).read()


@pytest.mark.parametrize("host", [TorchHost(), PretendedHost()])
def test_numbers_and_vectors_of_every_type_come_back_in_their_places(host: Any):
    values: list[float | Tensor] = [0.5, torch.tensor(2), torch.tensor(1.25), 3.0]
    lists = [torch.tensor([1.0, 2.0]), torch.tensor([7, 8, 9]), torch.tensor([4.0]).double()]
    assert arrived(values, lists, host) == (
        [0.5, 2.0, 1.25, 3.0],
        [(1.0, 2.0), (7.0, 8.0, 9.0), (4.0,)],
    )
    assert arrived([], [], host) == ([], [])
    assert arrived([], [torch.ones(1)], host) == ([], [(1.0,)])


def test_every_type_of_a_device_comes_in_the_same_copy():
    host = PretendedHost()
    values: list[float | Tensor] = [torch.ones((), dtype=dtype) for dtype in DTYPES * 4]
    lists = [torch.arange(3).to(dtype) for dtype in DTYPES]
    numbers, several = arrived(values, lists, host)
    assert host.copies == [5 * (4 + 3)]
    assert numbers == [1.0] * 20
    assert several == [(0.0, 1.0, 2.0)] * 4 + [(0.0, 1.0, 1.0)]


def test_large_counts_and_small_differences_survive_the_packing():
    count, fine = 2**53 - 1, 1 + 2**-52
    values: list[float | Tensor] = [torch.tensor(count), torch.tensor(fine, dtype=torch.float64)]
    assert arrived(values, [], PretendedHost())[0] == [float(count), fine]


def test_on_the_host_each_type_is_read_once(monkeypatch: pytest.MonkeyPatch):
    reads: list[Tensor] = []
    original: Any = Tensor.tolist
    monkeypatch.setattr(Tensor, "tolist", lambda self: (reads.append(self), original(self))[1])
    scalars: list[float | Tensor] = [torch.ones((), dtype=dtype) for dtype in DTYPES * 4]
    arrived(scalars, [torch.ones(3).to(dtype) for dtype in DTYPES * 2])
    assert [read.numel() for read in reads] == [4 + 2 * 3] * 5


def number(step: int, value: float | Tensor) -> Unread:
    return Unread([value], [], lambda numbers, _: [Scalar(step, "loss", numbers[0])])


def test_a_portion_is_its_parts_in_order_with_their_numbers_in_place():
    note = Event(3, EventKind.NOTE)
    portion = Portion([number(1, torch.tensor(0.5)), note, number(2, 0.25)], PretendedHost())
    portion.append(Event(3, EventKind.MEASURED))
    assert not portion.done()
    assert portion.items_without_numbers() == [note, Event(3, EventKind.MEASURED)]
    expected: list[Item] = [Scalar(1, "loss", 0.5), note, Scalar(2, "loss", 0.25)]
    assert portion.items() == [*expected, Event(3, EventKind.MEASURED)]


def test_what_the_host_has_at_hand_is_read_at_once_and_becomes_items_when_asked_for():
    made: list[str] = []
    value = torch.tensor(0.5)

    def items(numbers: list[float], _lists: Any) -> Iterable[Item]:
        made.append("now")
        return [Scalar(0, "loss", number) for number in numbers]

    portion = Portion([Unread([value], [], items)], TorchHost())
    value.fill_(2.0)
    assert portion.done()
    assert made == []
    assert portion.items() == [Scalar(0, "loss", 0.5)]
    assert made == ["now"]


def test_a_portion_holds_no_tensor():
    import weakref

    value, several = torch.tensor(0.5), torch.ones(3)
    portion = Portion([Unread([value], [several], lambda *_: [])], PretendedHost())
    held = [weakref.ref(value), weakref.ref(several)]
    del value, several
    assert [ref() for ref in held] == [None, None]
    assert portion.items() == []


# -- the copy of CUDA, with its driver played by the test ------------------------------------------


class Driver:
    """Notes what is asked of it, in order; an event is done once the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self.allocated: list[int] = []
        self.done = False
        driver, empty, copy = self, torch.empty, Tensor.copy_

        class PlayedEvent:
            def record(self, stream: object) -> None:
                driver.calls.append(f"record on {stream}")

            def query(self) -> bool:
                return driver.done

            def synchronize(self) -> None:
                driver.calls.append("synchronize")

        def allocate(size: int, *, pin_memory: bool, **options: Any) -> Tensor:
            assert pin_memory
            driver.allocated.append(size)
            return empty(size, **options)

        def copied(self: Tensor, source: Tensor, *, non_blocking: bool = False) -> Tensor:
            driver.calls.append(f"copy of {source.numel()}, {non_blocking=}")
            return copy(self, source)

        monkeypatch.setattr(torch.cuda, "Event", PlayedEvent)
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device: f"the stream of {device}")
        monkeypatch.setattr(torch, "empty", allocate)
        monkeypatch.setattr(Tensor, "copy_", copied)
        monkeypatch.setattr(Tensor, "is_cuda", property(lambda _: True))


def packed(size: int) -> Tensor:
    return torch.arange(size, dtype=torch.float64)


def test_a_copy_is_queued_before_its_event_and_waited_for_only_when_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
):
    tensor, driver, host = packed(3), Driver(monkeypatch), TorchHost()
    copy = host.fetch(tensor)
    assert driver.calls == ["copy of 3, non_blocking=True", "record on the stream of cpu"]
    assert not copy.done()
    driver.done = True
    assert copy.done()
    assert copy.numbers() == [0.0, 1.0, 2.0]
    assert driver.calls[2:] == ["synchronize"]


def test_pinned_memory_is_used_again_once_it_is_read_and_grows(monkeypatch: pytest.MonkeyPatch):
    small, large, driver, host = packed(5), packed(3000), Driver(monkeypatch), TorchHost()
    first = host.fetch(small)
    second = host.fetch(small)  # while the first is on its way
    assert driver.allocated == [1024, 1024]
    for copy in (first, second):
        assert copy.numbers() == [0.0, 1.0, 2.0, 3.0, 4.0]
    host.fetch(small).numbers()
    assert driver.allocated == [1024, 1024]
    assert host.fetch(large).numbers()[-1] == 2999.0
    assert driver.allocated == [1024, 1024, 4096]
    host.fetch(large).numbers()
    assert len(driver.allocated) == 3


def test_a_device_without_pinned_memory_is_read_late():
    copy = TorchHost().fetch(packed(2))
    assert not copy.done()
    assert copy.numbers() == [0.0, 1.0]


def test_cuda_is_asked_for_graphs_only_once_the_program_uses_it(monkeypatch: pytest.MonkeyPatch):
    def capturing() -> bool:
        raise AssertionError("this would initialize CUDA")

    monkeypatch.setattr(transfer, "_CUDA", True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", capturing)
    assert not TorchHost().capturing()
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    assert TorchHost().capturing()


def test_numbers_go_to_a_device_from_pinned_memory_without_waiting(
    monkeypatch: pytest.MonkeyPatch,
):
    calls: list[object] = []
    make: Callable[..., Tensor] = torch.tensor

    def tensor(numbers: list[float], *, pin_memory: bool, **options: Any) -> Tensor:
        calls.append(("pinned", pin_memory))
        return make(numbers, **options)

    def to(self: Tensor, device: torch.device, *, non_blocking: bool = False) -> Tensor:
        calls.append((device, non_blocking))
        return self

    monkeypatch.setattr(torch, "tensor", tensor)
    monkeypatch.setattr(Tensor, "to", to)
    device = torch.device("cuda", 0)
    assert to_device([1.0, 2.0], torch.float64, device).dtype is torch.float64
    assert calls == [("pinned", True), (device, True)]
    to_device([1.0], torch.float32, torch.device("cpu"))
    assert calls[2:] == [("pinned", False)]
