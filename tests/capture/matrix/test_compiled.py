"""torch.compile: no graph, operation, break or recompilation more than without traindx.

And losses, state and random numbers to the last bit, since nothing of a graph is measured.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounterWithBackend
from torch.utils.checkpoint import checkpoint

from tests.capture.matrix.training import Outcome, Training, batch, outcome
from tests.capture.watched import Recording, watched

pytestmark = [
    pytest.mark.slow,
    # torch's own compiler warns of its own deprecations.
    pytest.mark.filterwarnings("ignore"),
]

INDUCTOR = ["inductor"] if shutil.which("g++") else []
"""Where there is a compiler for its code."""

Backend = Any
Call = Callable[..., Tensor]


# -- what is compiled ----------------------------------------------------------------------------


def a_wrapper(net: nn.Module, backend: Backend) -> Call:
    return torch.compile(net, backend=backend)


def in_place(net: nn.Module, backend: Backend) -> Call:
    net.compile(backend=backend)
    return net


def a_function(net: nn.Module, backend: Backend) -> Call:
    return torch.compile(lambda x: net(x), backend=backend)


def in_one_graph(net: nn.Module, backend: Backend) -> Call:
    return torch.compile(net, backend=backend, fullgraph=True)


def a_part(net: Any, backend: Backend) -> Call:
    net[0] = torch.compile(net[0], backend=backend)
    return net


WAYS = [a_wrapper, in_place, a_function, in_one_graph, a_part]


# -- what it is ----------------------------------------------------------------------------------


class Breaks(nn.Module):
    """Python decides by a value: dynamo must break the graph here."""

    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if float(x.sum()) > 0 else x * 3


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = nn.Sequential(nn.Linear(8, 8), nn.Tanh())

    def forward(self, x: Tensor) -> Tensor:
        return checkpoint(self.part, x, use_reentrant=False)  # pyright: ignore


def usual() -> list[nn.Module]:
    return [nn.BatchNorm1d(8), nn.ReLU(inplace=True), nn.Dropout(0.3)]


KINDS: dict[str, Callable[[], list[nn.Module]]] = {
    "usual": usual,
    "breaks": lambda: [Breaks()],
    "checkpointed": lambda: [Checkpointed()],
}


def whole_step(backend: Backend) -> Training:
    """Forward, loss, backward and update in one function: our listeners lie within the graphs."""
    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    @torch.compile(backend=backend)
    def train(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Training(lambda i: train(*batch(8)), (net, optimizer), steps=14)


def compiled(way: Callable[..., Call], kind: str, *, step_too: bool, backend: Backend) -> Training:
    """With evaluation between the steps, and a batch of another size at the fifth."""
    net = nn.Sequential(nn.Linear(6, 8), *KINDS[kind](), nn.Linear(8, 3))
    call = way(net, backend)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    update = torch.compile(optimizer.step, backend=backend) if step_too else optimizer.step

    def step(i: int) -> object:
        x, y = batch(16 if i == 4 else 8)
        optimizer.zero_grad()
        loss = F.mse_loss(call(x), y)
        loss.backward()
        update()
        net.eval()
        with torch.no_grad():
            out = call(x)
        net.train()
        return loss.detach(), out

    return Training(step, (net, optimizer), steps=14)


def counted(
    program: Callable[[Backend], Training], *, by: str = "aot_eager"
) -> tuple[Outcome, object]:
    """What came of it, and what dynamo compiled for it: a recompilation is one more graph."""
    torch._dynamo.reset()
    counters = torch._dynamo.utils.counters
    counters.clear()
    backend = CompileCounterWithBackend(by)
    done = outcome(lambda: program(backend))
    done.warnings = []  # some say how long something took
    counts: dict[str, object] = {
        "graphs": backend.frame_count,
        "operations": backend.op_count,
        "breaks": dict(counters["graph_break"]),
    }
    return done, counts


def assert_same(
    program: Callable[[Backend], Training], *, by: str = "aot_eager", **options: Any
) -> Recording:
    expected = counted(program, by=by)
    with watched(**options) as recording:
        found = counted(program, by=by)
    assert found[1] == expected[1]
    assert found[0] == expected[0]
    assert not isinstance(expected[0].steps[-1], str), "it has raised"
    return recording


def of(way: Callable[..., Call], kind: str = "usual", *, step_too: bool = False) -> Any:
    return lambda backend: compiled(way, kind, step_too=step_too, backend=backend)


each_way = pytest.mark.parametrize("way", WAYS)


@each_way
@pytest.mark.parametrize("options", [{}, {"every": 3}, {"trap_nan": True}], ids=str)
def test_nothing_is_compiled_more(way: Callable[..., Call], options: dict[str, Any]):
    recording = assert_same(of(way), **options)
    assert recording.run.steps == 14
    assert recording.sites("grad.l2")


@pytest.mark.parametrize("way", [a_wrapper, in_place, a_function])
@pytest.mark.parametrize("kind", ["breaks", "checkpointed"])
def test_graphs_break_where_they_broke(way: Callable[..., Call], kind: str):
    assert assert_same(of(way, kind)).run.steps == 14


@pytest.mark.parametrize("way", [in_place, in_one_graph])
def test_a_compiled_optimizer_step_is_compiled_as_often(way: Callable[..., Call]):
    recording = assert_same(of(way, step_too=True))
    assert recording.run.steps >= 13  # the last step is seen by the next forward


@pytest.mark.parametrize("options", [{}, {"every": 3}], ids=str)
def test_a_whole_step_in_one_function_is_compiled_as_often(options: dict[str, Any]):
    recording = assert_same(whole_step, **options)
    assert recording.run.steps >= 13
    assert recording.sites("grad.l2")


@pytest.mark.parametrize("by", INDUCTOR)
def test_code_that_is_generated_is_generated_once(by: str):
    assert assert_same(of(a_wrapper), by=by).run.steps == 14
