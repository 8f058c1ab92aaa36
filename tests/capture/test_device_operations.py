"""Every operation on a device, played by the one that knows no numbers: to read it is an error.

A meta tensor has a type and a shape. What is copied to it from the CPU, or back, can be seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from traindx import stats
from traindx.capture.arrays import sample
from traindx.capture.collectors import units
from traindx.capture.collectors.updates import _norms_on_device
from traindx.capture.graph import _operand
from traindx.capture.transfer import Arrival, Copy
from traindx.capture.ways import spectral_norm

DEVICE = torch.device("meta")
SHAPES = [(4096,), (5, 7), (2, 3, 4, 5), (1,), ()]
DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64]


class Crossings(TorchDispatchMode):
    """Notes what is copied from one device to another."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        given = [arg for arg in args if isinstance(arg, Tensor)]
        if isinstance(result, Tensor) and any(it.device != result.device for it in given):
            self.found.append(f"{func.name()} from {[it.device.type for it in given]}")
        return result


class MetaHost:
    """Takes the tensors of the device, and brings nothing."""

    def __init__(self) -> None:
        self.packed: list[Tensor] = []

    def at_hand(self, tensor: Tensor) -> bool:
        return tensor.is_cpu

    def fetch(self, packed: Tensor) -> Copy:
        self.packed.append(packed)
        return None  # pyright: ignore[reportReturnType]

    def capturing(self) -> bool:
        return False


def on_device(operation: Callable[[Callable[..., Tensor]], Any]) -> Any:
    """What an operation gives of tensors that are made for it on the device."""

    def make(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.empty(shape, dtype=dtype, device=DEVICE)

    with Crossings() as crossings:
        result = operation(make)
    assert crossings.found == []
    return result


def test_a_copy_from_the_cpu_is_seen():
    with Crossings() as crossings:
        torch.ones(2).to(DEVICE)
    assert len(crossings.found) == 1


def assert_there(values: Any) -> None:
    for value in values:
        assert isinstance(value, Tensor)
        assert value.device == DEVICE


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_statistics_stay_on_the_device(shape: tuple[int, ...], dtype: torch.dtype):
    def operation(make: Callable[..., Tensor]) -> list[Any]:
        tensor, scale = make(*shape, dtype=dtype), make()
        row = stats.summarize(tensor, sample_at=3)
        counts = stats.exponents(tensor, 3), stats.exponents(tensor, 3, scale)
        return [*row.fields, *counts]

    assert_there(on_device(operation))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_statistics_of_tensors_in_any_order_stay_on_the_device(dtype: torch.dtype):
    def operation(make: Callable[..., Tensor]) -> list[Any]:
        images = make(8, 6, 5, 4, dtype=dtype)
        views = images.permute(0, 2, 3, 1), images[::2, 1:3], images[:1].expand(8, 6, 5, 4)
        rows = [stats.summarize(view, sample_at=1) for view in views]
        shares = [stats.batch_share(view, 1) for view in views]
        return [field for row in rows for field in row.fields] + shares

    assert_there(on_device(operation))


def test_what_is_active_stays_on_the_device():
    def operation(make: Callable[..., Tensor]) -> list[Any]:
        active = make(6, dtype=torch.bool)
        units._note_active(active, make(4, 6, 3, 3), 1)
        return [active]

    assert_there(on_device(operation))


def test_samples_of_parameters_stay_on_the_device():
    def operation(make: Callable[..., Tensor]) -> list[Any]:
        pairs = [(sample(make(9, 9)), sample(make(9, 9))) for _ in range(2)]
        return [*_norms_on_device(pairs)]

    assert_there(on_device(operation))


def test_what_a_loss_compares_and_its_weights_norms_stay_on_the_device():
    def operation(make: Callable[..., Tensor]) -> list[Any]:
        operands = [_operand(make(4, 3, dtype=dtype), "") for dtype in DTYPES]
        numbers = [number for operand in operands for number in operand.unread]
        return [*numbers, spectral_norm(make(6, 3, 3, 3)), spectral_norm(make(4, 4))]

    assert_there(on_device(operation))


def test_numbers_of_every_type_are_packed_on_the_device():
    host = MetaHost()

    def operation(make: Callable[..., Tensor]) -> None:
        values: list[float | Tensor] = [0.5, *(make(dtype=dtype) for dtype in DTYPES * 2)]
        values += [make(dtype=torch.int64), make(dtype=torch.bool)]
        Arrival(values, [make(3), make(4, dtype=torch.int64)], host)

    on_device(operation)
    (packed,) = host.packed
    assert_there(host.packed)
    assert (packed.numel(), packed.dtype) == (8 + 2 + 3 + 4, torch.float64)
