"""Trainings that differ in their tensors: types, layouts, subclasses, sizes."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.capture.matrix.training import Cases, Net, Training, batch, plain, quiet

CASES = Cases()


@CASES(slow=True)
def integers_go_in() -> Training:
    net = nn.Sequential(nn.Embedding(10, 6), nn.Linear(6, 3))
    return plain(net, (torch.arange(8), batch()[1]))


@CASES()
def empty_batch() -> Training:
    data = torch.zeros(0, 6), torch.zeros(0, 3)
    return plain(Net(), data, lambda out, y: (out - y).sum())


@CASES(slow=True)
def batch_of_one() -> Training:
    return plain(Net(), batch(1))


@CASES()
def the_model_returns_its_loss() -> Training:
    return plain(Net(lambda self, x: self.last(self.first(x)).mean()), loss=lambda out, y: out)


@CASES()
def everything_is_a_scalar() -> Training:
    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.tensor(2.0))

        def forward(self, x: Tensor) -> Tensor:
            return self.weight * x

    return plain(Scale(), (torch.tensor(3.0), torch.tensor(1.0)))


@CASES()
def complex_layers() -> Training:
    net = nn.Linear(6, 3, dtype=torch.cfloat)
    data = batch()[0].to(torch.cfloat), batch()[1]
    return plain(net, data, lambda out, y: (out.abs() - y).square().mean())


@CASES()
def complex_loss() -> Training:
    net = nn.Linear(6, 1, dtype=torch.cfloat)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    def step(i: int) -> object:
        optimizer.zero_grad()
        loss = net(torch.ones(2, 6, dtype=torch.cfloat)).sum()
        loss.backward(torch.ones((), dtype=torch.cfloat))
        optimizer.step()
        return loss.detach()

    return Training(step, (net, optimizer))


def of_type(dtype: torch.dtype) -> Training:
    x, y = batch()
    return plain(Net().to(dtype), (x.to(dtype), y.to(dtype)))


@CASES()
def bfloat16() -> Training:
    return of_type(torch.bfloat16)


@CASES()
def float16() -> Training:
    return of_type(torch.float16)


@CASES(slow=True)
def float64() -> Training:
    return of_type(torch.float64)


class DefaultType:
    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype

    def __enter__(self) -> None:
        torch.set_default_dtype(self.dtype)

    def __exit__(self, *_: object) -> None:
        torch.set_default_dtype(torch.float32)


def of_default_type(dtype: torch.dtype) -> Training:
    with DefaultType(dtype):
        net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
        data = torch.randn(8, 6), torch.randn(8, 3)
    return plain(net, data, within=(lambda: DefaultType(dtype),))


@CASES(slow=True)
def default_type_float64() -> Training:
    return of_default_type(torch.float64)


@CASES()
def default_type_bfloat16() -> Training:
    return of_default_type(torch.bfloat16)


@CASES()
def float8_buffer() -> Training:
    net = Net()
    net.register_buffer("small", torch.zeros(3).to(torch.float8_e4m3fn))
    return plain(net)


@CASES()
def sparse_input() -> Training:
    net = Net(lambda self, x: self.last(torch.sparse.mm(x, self.first.weight.t())))
    return plain(net, (batch()[0].to_sparse(), batch()[1]))


@CASES(slow=True)
def sparse_rows_input() -> Training:
    with quiet():
        x = batch()[0].to_sparse_csr()
    return plain(Net(lambda self, x: self.last(x @ self.first.weight.t())), (x, batch()[1]))


def nested(layout: torch.layout) -> Training:
    with quiet():
        x = torch.nested.nested_tensor([torch.ones(2, 6), torch.ones(3, 6)], layout=layout)
    padded = torch.nested.to_padded_tensor
    net = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 3))
    return plain(net, (x, None), lambda out, y: padded(out, 0.0).square().mean())


@CASES()
def nested_strided() -> Training:
    return nested(torch.strided)


@CASES()
def nested_jagged() -> Training:
    return nested(torch.jagged)


@CASES()
def quantized_input() -> Training:
    with quiet():
        x = torch.quantize_per_tensor(batch()[0], 0.1, 0, torch.qint8)
    return plain(Net(lambda self, x: self.last(self.first(x.dequantize()))), (x, batch()[1]))


def dry_run() -> None:
    net = Net().to("meta")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.zeros(4, 6, device="meta")).sum().backward()
    optimizer.step()


@CASES(slow=True)
def dry_run_on_meta_after_each_step() -> Training:
    return plain(Net(), after=lambda i: dry_run())


@CASES(slow=True, references=False)  # there is no memory behind a fake tensor
def dry_run_on_fake_tensors_after_each_step() -> Training:
    from torch._subclasses.fake_tensor import FakeTensorMode

    def after(i: int) -> None:
        with FakeTensorMode():
            net = Net()
            net(torch.zeros(4, 6)).sum().backward()

    return plain(Net(), after=after)


class Own(Tensor):
    """A subclass that counts what is called on it."""

    calls = 0

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        Own.calls += 1
        return super().__torch_function__(func, types, args, kwargs or {})


@CASES()
def subclass_that_counts_calls() -> Training:
    Own.calls = 0
    x, y = batch()
    return plain(Net(), (x.as_subclass(Own), y), after=lambda i: Own.calls)


class Refuses(Tensor):
    """A subclass that can neither be asked about nor detached."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in ("is_floating_point", "numel", "is_complex", "detach"):
            raise TypeError(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


@CASES()
def subclass_that_refuses() -> Training:
    net = Net(lambda self, x: self.last(F.relu(self.first(x.as_subclass(Tensor)))))
    x, y = batch()
    return plain(net, (x.as_subclass(Refuses), y))


@CASES()
def expanded_beyond_memory() -> Training:
    def way(self: Any, x: Tensor) -> Tensor:
        out = self.last(self.first(x))
        self.same(out.detach()[:, :, None].expand(*out.shape, 1 << 40))
        return out

    net = Net(way)
    net.same = nn.Identity()
    return plain(net)
