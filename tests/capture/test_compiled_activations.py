"""Compiled models that are run eagerly where they are measured: only where that is harmless."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._dynamo import eval_frame
from torch._dynamo.testing import CompileCounterWithBackend

from tests.capture.watched import Recording, batch, watched
from traindx.records import EventKind

pytestmark = [
    pytest.mark.slow,
    # torch's own compiler warns of its own deprecations.
    pytest.mark.filterwarnings("ignore"),
]

Call = Callable[[Tensor], Tensor]
Backend = Any


class Net(nn.Module):
    def __init__(self, *parts: nn.Module) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.norm, self.last = nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)
        self.parts = nn.Sequential(*parts)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.parts(torch.relu(self.norm(self.first(x)))))


@pytest.fixture(autouse=True)
def _compiled_anew() -> Iterator[None]:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield
    assert stance() == "default"


def stance() -> str:
    return eval_frame._stance.stance


# -- what is compiled ----------------------------------------------------------------------------


def a_wrapper(net: nn.Module, backend: Backend) -> Call:
    return torch.compile(net, backend=backend)


def in_one_graph(net: nn.Module, backend: Backend) -> Call:
    return torch.compile(net, backend=backend, fullgraph=True)


def in_place(net: nn.Module, backend: Backend) -> Call:
    net.compile(backend=backend)
    return net


def a_function(net: nn.Module, backend: Backend) -> Call:
    return torch.compile(lambda x: net(x) * 1.5, backend=backend)


WAYS = [a_wrapper, in_one_graph, in_place, a_function]
each_way = pytest.mark.parametrize("way", WAYS)


class Trained:
    """A training of eight steps, evaluated after each.

    Attributes:
        losses: Of its steps.
        outputs: Of its evaluations.
        counts: What dynamo compiled for it.
        random: The random state after it.
    """

    def __init__(
        self, way: Callable[..., Call], net: nn.Module, *, step_too: bool = False, steps: int = 8
    ) -> None:
        torch._dynamo.reset()
        counters = torch._dynamo.utils.counters
        counters.clear()
        backend = CompileCounterWithBackend("aot_eager")
        call = way(net, backend)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        update = torch.compile(optimizer.step, backend=backend) if step_too else optimizer.step
        torch.manual_seed(7)
        x, y = batch(rows=16)
        self.losses: list[float] = []
        self.outputs: list[Tensor] = []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = F.cross_entropy(call(x), y)
            loss.backward()
            assert stance() == "default"
            update()
            self.losses.append(loss.item())
            net.eval()
            with torch.no_grad():
                self.outputs.append(call(x))
            net.train()
        self.counts = (backend.frame_count, backend.op_count, dict(counters["graph_break"]))
        self.random = torch.get_rng_state()


def compared(
    way: Callable[..., Call], *parts: nn.Module, every: int = 2, fails: bool = False, **options: Any
) -> tuple[Recording, Trained, Trained]:
    """What was recorded; the bare training, and the same one watched."""
    bare = Trained(way, Net(*parts), **options)
    with watched(every, compiled_activations=True, fails=fails) as recording:
        found = Trained(way, Net(*parts), **options)
    return recording, bare, found


@each_way
def test_activations_are_measured_and_losses_agree_to_rounding(way: Callable[..., Call]):
    recording, bare, found = compared(way, nn.Tanh())
    assert found.losses == pytest.approx(bare.losses, rel=1e-5)
    assert found.counts == bare.counts
    assert torch.equal(found.random, bare.random)
    for i, output in enumerate(found.outputs):
        torch.testing.assert_close(output, bare.outputs[i], rtol=1e-4, atol=1e-5)
    # The first step with a beginning that is seen shows that nothing random is drawn.
    measured = recording.series("output.mean", "first").steps.tolist()
    assert measured == ([2, 4, 6] if way in (a_wrapper, in_one_graph) else [4, 6])
    assert recording.sites("output.mean") >= {"first", "norm", "parts.0", "last"}
    assert recording.sites("output_grad.rms") >= {"first", "norm", "parts.0", "last"}
    assert recording.run.steps == 8
    assert recording.notes().count("to rounding only") == 1


def test_outputs_are_those_of_the_modules():
    with watched(1, compiled_activations=True) as recording:
        net = Net()
        fast = torch.compile(net, backend="aot_eager")
        x, _ = batch(rows=16)
        seen: list[Tensor] = []
        for _ in range(3):
            seen.append(net.first(x).detach())
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            optimizer.zero_grad()
            fast(x).square().mean().backward()
            optimizer.step()
    series = recording.series("output.mean", "first")
    assert series.values.tolist() == pytest.approx(
        [float(seen[step].mean()) for step in series.steps], rel=1e-6
    )


def test_a_root_is_one_whatever_wraps_it():
    for root in (Net(), nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))):
        with watched(1, compiled_activations=True) as recording:
            Trained(a_wrapper, root, steps=3)
        calls = {module.fqn: module.calls for module in recording.model().modules}
        assert calls[""] <= 1


@pytest.mark.parametrize("way", [a_wrapper, in_place])
def test_a_compiled_optimizer_step_stays_compiled(way: Callable[..., Call]):
    recording, bare, found = compared(way, every=1, step_too=True)
    assert found.losses == pytest.approx(bare.losses, rel=1e-5)
    assert found.counts == bare.counts
    # Such steps are told by the next forward or backward pass, and of these only the first is early
    # enough.
    assert bool(recording.sites("output.mean")) == (way in (a_wrapper, in_one_graph))


def test_without_the_option_nothing_changes():
    bare = Trained(in_place, Net())
    with watched() as recording:
        found = Trained(in_place, Net())
    assert (found.losses, found.counts) == (bare.losses, bare.counts)
    assert recording.sites("output.mean") == set()
    assert "activations are not measured" in recording.notes()


# -- what is refused -----------------------------------------------------------------------------


class FunctionalDropout(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(x, 0.5, self.training)


def dropout() -> nn.Module:
    return nn.Dropout(0.5)


@pytest.mark.parametrize(
    ("way", "part"),
    [*((way, FunctionalDropout) for way in WAYS), (a_wrapper, dropout), (in_place, nn.RReLU)],
)
def test_a_model_that_draws_random_numbers_is_trained_as_it_was(
    way: Callable[..., Call], part: Callable[[], nn.Module]
):
    recording, bare, found = compared(way, part(), every=1, fails=True)
    assert found.losses == bare.losses
    assert found.counts == bare.counts
    assert torch.equal(found.random, bare.random)
    assert recording.sites("output.mean") == set()
    assert recording.sites("grad.l2")
    (told,) = recording.warnings
    assert told.startswith("Compiled activations are not measured: ")
    assert "random numbers" in told


def test_the_module_is_named_where_random_numbers_are_drawn_later_on():
    with watched(1, compiled_activations=True, fails=True) as recording:
        net = Net(nn.Dropout(0.5).eval())
        fast = torch.compile(net, backend="aot_eager")
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(6):
            if step == 4:
                net.parts.train()
            optimizer.zero_grad()
            fast(batch(rows=16)[0]).square().mean().backward()
            optimizer.step()
    assert recording.warnings == [
        "Compiled activations are not measured: `fast.parts.0` draws random numbers."
    ]
    assert recording.series("output.mean", "first").steps.tolist() == [1, 2, 3]


def test_data_drawn_between_steps_is_told_from_dropout_where_the_model_is_wrapped():
    def trained(way: Callable[..., Call]) -> None:
        net = Net()
        call = way(net, "aot_eager")
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(6):
            optimizer.zero_grad()
            call(torch.randn(16, 6)).square().mean().backward()
            optimizer.step()

    with watched(1, compiled_activations=True) as recording:
        trained(a_wrapper)
    assert recording.values("output.mean", "first")
    torch._dynamo.reset()
    with watched(1, compiled_activations=True, fails=True) as recording:
        trained(in_place)
    assert "between the steps" in recording.warnings[0]
    assert recording.sites("output.mean") == set()


# -- the stance ----------------------------------------------------------------------------------


def steps_of(net: nn.Module, around: Callable[[int, Callable[[], None]], None]) -> None:
    """Six steps, each called by what stands around it."""
    fast = torch.compile(net, backend="aot_eager")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        fast(batch(rows=16)[0]).square().mean().backward()
        optimizer.step()

    for i in range(6):
        around(i, step)


def test_the_scripts_own_stance_is_left_as_it_is():
    def around(i: int, step: Callable[[], None]) -> None:
        step()
        if i == 0:
            torch.compiler.set_stance("eager_on_recompile")
        assert stance() == ("eager_on_recompile")

    try:
        with watched(1, compiled_activations=True, fails=True) as recording:
            steps_of(Net(), around)
    finally:
        torch.compiler.set_stance("default")
    assert "stance" in recording.warnings[0]


def test_a_stance_of_the_scripts_for_a_while_ends_with_the_default():
    seen: list[str] = []

    def around(i: int, step: Callable[[], None]) -> None:
        if i == 4:
            with torch.compiler.set_stance("fail_on_recompile"):
                seen.append(stance())
                step()
            seen.append(stance())
        else:
            step()

    with watched(1, compiled_activations=True, fails=True):
        steps_of(Net(), around)
    assert seen[0] == "fail_on_recompile"


def test_an_exception_in_forward_leaves_the_default():
    class Failing(nn.Module):
        fails = False

        def forward(self, x: Tensor) -> Tensor:
            if self.fails:
                raise KeyError("mine")
            return x

    part = Failing()

    def around(i: int, step: Callable[[], None]) -> None:
        part.fails = i == 4
        if i == 4:
            with pytest.raises(KeyError):
                step()
            assert stance() == "default"
        else:
            step()

    with watched(1, compiled_activations=True) as recording:
        steps_of(Net(part), around)
    assert recording.run.steps == 5


def test_closing_in_the_middle_leaves_the_default():
    with watched(1, compiled_activations=True):
        steps_of(Net(), lambda i, step: step() if i < 3 else None)
    assert stance() == "default"
    assert nn.Module.__call__.__module__ == "torch.nn.modules.module"


def test_evaluations_run_compiled_even_before_a_measured_step():
    net = Net()
    backend = CompileCounterWithBackend("aot_eager")
    stances: list[str] = []
    with watched(1, compiled_activations=True) as recording:
        fast = torch.compile(net, backend=backend)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            fast(batch(rows=16)[0]).square().mean().backward()
            optimizer.step()
            stances.append(stance())
            net.eval()
            with torch.no_grad():
                fast(batch(rows=16)[0])
            net.train()
    assert stances == ["force_eager"] * 4  # the next step is measured
    assert backend.frame_count == 2  # one for training, one for evaluation
    assert recording.events(EventKind.EVALUATION)
