"""Training that is written in unusual ways: watched to the end, and the same to the last bit.

Each of these once changed a training, or made traindx step aside.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from tests.capture.watched import Recording, batch, mlp, train, watched
from traindx.records import EventKind

Body = Callable[[], object]
Loss = Callable[[Any, Any], Tensor]


def seeded(body: Body) -> str:
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    return repr((body(), torch.rand(()), random.random(), np.random.rand()))


def assert_undisturbed(body: Body, *, trap_nan: bool = False) -> Recording:
    """The same results and random numbers with and without; the recording of it."""
    expected = seeded(body)
    with watched(trap_nan=trap_nan) as recording:
        assert seeded(body) == expected
    return recording


class Layers(nn.Module):
    """Two linear layers, with a function of the layers and the input for a forward pass."""

    def __init__(self, forward: Callable[[Any, Any], Any], outputs: int = 3) -> None:
        super().__init__()
        self.first, self.last, self.way = nn.Linear(6, 8), nn.Linear(8, outputs), forward

    def forward(self, x: Any) -> Any:
        return self.way(self, x)


def state(net: nn.Module) -> list[float]:
    return [float(tensor.double().sum()) for tensor in net.state_dict().values()]


# -- whatever the user has hung on autograd ------------------------------------------------------


class Checkpointed(nn.Module):
    """All of it is computed again in backward: with its dropout and its running statistics."""

    def __init__(self, last: nn.Module) -> None:
        super().__init__()
        self.part = nn.Sequential(
            nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 3), last
        )
        self.calls = 0

    def run(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.part(x)

    def forward(self, x: Tensor) -> tuple[Tensor]:
        out = checkpoint(self.run, x, use_reentrant=False, preserve_rng_state=False)
        return (out,)  # pyright: ignore[reportReturnType]


@pytest.mark.parametrize("trap_nan", [False, True])
@pytest.mark.parametrize("last", [nn.Softmax(-1), nn.Sigmoid(), nn.Identity()])
def test_a_checkpointed_part_is_computed_as_often_as_it_would_be(last: nn.Module, trap_nan: bool):
    def body() -> object:
        net = Checkpointed(last)
        losses = train(net, steps=4, loss=lambda out, y: F.mse_loss(out[0], F.one_hot(y, 3) * 1.0))
        return losses, net.calls, state(net)

    assert assert_undisturbed(body, trap_nan=trap_nan).run.steps == 4


def test_a_checkpointed_loss_is_computed_as_often_as_it_would_be():
    calls: list[int] = []

    def loss(out: Tensor, y: Tensor) -> Tensor:
        calls.append(len(calls))
        return F.binary_cross_entropy(F.dropout(out, 0.5).sigmoid(), F.one_hot(y, 3) * 1.0)

    def body() -> object:
        calls.clear()
        net = mlp()
        options = {"use_reentrant": False, "preserve_rng_state": False}
        losses = train(net, loss=lambda out, y: checkpoint(loss, out, y, **options))  # type: ignore
        return losses, len(calls)

    assert_undisturbed(body, trap_nan=True)


def test_hooks_on_saved_tensors_run_as_often_as_they_would():
    def body() -> object:
        unpacked: list[int] = []

        def unpack(tensor: Tensor) -> Tensor:
            unpacked.append(tensor.numel())
            return tensor

        net = nn.Sequential(mlp(), nn.Softmax(-1))
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
            losses = train(net, loss=lambda out, y: F.nll_loss(out.log(), y))
        return losses, unpacked

    assert_undisturbed(body, trap_nan=True)


class PassesNothing(torch.autograd.Function):
    """Multiplies by a weight, and has no gradient for its input."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:  # type: ignore[override]
        ctx.save_for_backward(x)
        ctx.name = "mine"
        return x * weight

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:  # type: ignore[override]
        return None, (gradients[0] * ctx.saved_tensors[0]).sum(0)


@pytest.mark.parametrize("trap_nan", [False, True])
def test_a_function_may_pass_no_gradient_and_keep_a_name_of_its_own(trap_nan: bool):
    def body() -> object:
        net = Layers(
            lambda self, x: self.last(PassesNothing.apply(self.first(x), self.last.weight[0]))
        )
        return train(net)

    assert assert_undisturbed(body, trap_nan=trap_nan).run.steps == 3


def test_a_complex_loss_is_no_loss_to_note():
    def body() -> object:
        net = nn.Linear(6, 1, dtype=torch.cfloat)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.ones(2, 6, dtype=torch.cfloat)).sum().backward(torch.ones((), dtype=torch.cfloat))
        optimizer.step()
        return list(net.parameters())

    recording = assert_undisturbed(body, trap_nan=True)
    assert (recording.run.steps, recording.sites("loss")) == (1, set())


# -- whatever the user has put between Python and torch ------------------------------------------


class Functions(TorchFunctionMode):
    """Counts the functions that are called."""

    num = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.num += 1
        return func(*args, **(kwargs or {}))


class Operations(TorchDispatchMode):
    """Counts the operations that run."""

    num = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.num += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("mode", [Functions, Operations])
def test_a_mode_of_the_users_sees_nothing_but_the_training(mode: Any):
    def body() -> object:
        with mode() as counting:
            losses = train(nn.Sequential(mlp(), nn.BatchNorm1d(3)))
        return losses, counting.num

    assert_undisturbed(body)


def test_a_default_device_is_the_users_alone():
    def body() -> object:
        net, data = nn.Sequential(mlp(), nn.BatchNorm1d(3), nn.ReLU()), batch()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        torch.set_default_device("meta")
        try:
            return train(net, optimizer=optimizer, data=data)
        finally:
            torch.set_default_device(None)

    assert assert_undisturbed(body).run.steps == 3


def test_a_replay_makes_tensors_on_the_default_device_as_the_call_did():
    places: list[str] = []

    def forward(self: Any, x: Tensor) -> Tensor:
        places.append(torch.zeros(1).device.type)
        return self.last(self.first(x).log() * 0)

    data = batch()
    net = Layers(forward)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    torch.set_default_device("meta")
    try:
        with watched(trap_nan=True):
            train(net, steps=1, optimizer=optimizer, data=data)
    finally:
        torch.set_default_device(None)
    assert places == ["meta", "meta"]


# -- unusual models and data ---------------------------------------------------------------------


class ListsParameters(nn.Sequential):
    def parameters(self, recurse: bool = True) -> Any:
        return [*super().parameters(recurse)]


class HasNoTruth(nn.Sequential):
    def __bool__(self) -> bool:
        raise RuntimeError("ask me something else")


class AnswersWithErrors(nn.Sequential):
    def __getattr__(self, name: str) -> Any:
        if name in ("eps", "batch_first", "momentum", "in_features"):
            raise KeyError(name)
        return super().__getattr__(name)


@pytest.mark.parametrize("kind", [ListsParameters, HasNoTruth, AnswersWithErrors])
def test_a_model_may_answer_in_its_own_way(kind: Any):
    recording = assert_undisturbed(lambda: train(nn.Sequential(kind(nn.Linear(6, 3)))))
    assert recording.sites("output.mean") == {"0.0"}


def test_containers_may_hold_themselves():
    def forward(self: Any, given: Any) -> list[Any]:
        output: list[Any] = [self.last(self.first(given["x"]))]
        return [output, *output]

    def body() -> object:
        x, y = batch()
        given: dict[str, Any] = {}
        given |= {"again": given, "x": x}
        return train(Layers(forward), data=(given, y), loss=lambda o, y: F.cross_entropy(o[1], y))  # type: ignore

    assert assert_undisturbed(body, trap_nan=True).run.steps == 3


def test_nested_tensors_are_passed_over():
    def body() -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that they are a prototype
            x = torch.nested.nested_tensor([torch.ones(2, 6), torch.ones(3, 6)])
        padded = torch.nested.to_padded_tensor
        net = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 3))
        return train(net, data=(x, x), loss=lambda out, _: padded(out, 0.0).square().mean())

    assert "nested" in assert_undisturbed(body).skips()["1", "output"]


def test_a_memory_estimate_before_the_training_is_passed_over():
    def fit() -> object:
        optimizer = torch.optim.SGD((dry := mlp().to("meta")).parameters(), lr=0.1)
        dry(torch.zeros(5, 6, device="meta")).sum().backward()
        optimizer.step()
        return train(mlp())

    assert assert_undisturbed(fit, trap_nan=True).sites("loss") == {""}


def test_gradients_per_sample_of_a_measured_model_are_left_alone():
    def body() -> object:
        net, (x, y) = mlp(), batch()
        losses = train(net, steps=1)
        F.cross_entropy(net(x), y)
        params = {name: param.detach() for name, param in net.named_parameters()}

        def loss(params: Any, x: Tensor, y: Tensor) -> Tensor:
            return F.cross_entropy(torch.func.functional_call(net, params, (x[None],)), y[None])

        per_sample = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))(params, x, y)
        return losses, per_sample, train(net, steps=1)

    assert assert_undisturbed(body).run.steps == 2


def test_an_expanded_output_is_measured_without_writing_it_out():
    def forward(self: Any, x: Tensor) -> Tensor:
        output = self.last(self.first(x))
        self.seen(output.detach()[:, :, None].expand(*output.shape, 1 << 40))
        return output

    def body() -> object:
        net = Layers(forward)
        net.seen = nn.Identity()
        return train(net)

    run = assert_undisturbed(body).run
    (count,) = {series.values[0] for series in run.series("output.mean", fqn="last")}
    assert count == run.series("output.mean", fqn="seen")[0].values[0]


def test_a_model_made_by_exec_in_a_namespace_without_a_name_is_watched():
    names: dict[str, Any] = {"train": train, "mlp": mlp, "__name__": None}
    code = "def fit():\n    net = mlp()\n    return train(net)"
    exec(code, names)
    assert assert_undisturbed(names["fit"]).run.steps == 3


# -- the replay ----------------------------------------------------------------------------------


def test_a_packed_sequence_is_replayed():
    class Reader(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cells, self.head = nn.GRU(6, 5), nn.Linear(5, 3)

        def forward(self, packed: Any) -> Tensor:
            output, _ = nn.utils.rnn.pad_packed_sequence(self.cells(packed)[0])
            return self.head(output[-1] * 0).log()

    packed = nn.utils.rnn.pack_padded_sequence(torch.ones(4, 2, 6), torch.tensor([4, 4]))
    net = Reader()
    with torch.no_grad():
        net.head.bias.zero_()
    with watched(trap_nan=True) as recording:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        net(packed).sum().backward()
        optimizer.step()
    (origin,) = recording.events(EventKind.ORIGIN)
    assert origin["operation"] == "log"


@pytest.mark.parametrize("where", ["forward", "backward"])
def test_a_replay_leaves_generators_and_containers_of_the_users_as_they_were(where: str):
    class Noisy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(6, 3)
            self.of_torch = torch.Generator().manual_seed(1)
            self.of_numpy, self.of_python = np.random.default_rng(1), random.Random(1)
            self.older = np.random.RandomState(1)
            self.seen: list[float] = []
            self.by_call: dict[int, float] = {}

        def forward(self, x: Tensor) -> Tensor:
            noise = self.of_numpy.normal() + self.of_python.random() + self.older.rand()
            x = x + torch.randn(x.shape, generator=self.of_torch) + noise
            self.seen.append(float(x.sum()))
            self.by_call[len(self.by_call)] = noise
            out = self.layer(x)
            if len(self.seen) == 2:
                out = out + (torch.zeros(()).log() if where == "forward" else (0 * out).sqrt())
            return out

    def body() -> object:
        net = Noisy()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x, y = batch()
        losses: list[object] = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            if all(bool(param.grad.isfinite().all()) for param in net.parameters()):  # type: ignore
                optimizer.step()
            losses.append(loss.item())
        drawn = torch.rand((), generator=net.of_torch), net.of_numpy.normal()
        return losses, drawn, net.of_python.random(), net.older.rand(), net.seen, net.by_call

    recording = assert_undisturbed(body, trap_nan=True)
    (origin,) = recording.events(EventKind.ORIGIN)
    assert "failed" not in str(origin)
