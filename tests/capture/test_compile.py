"""torch.compile: the same graphs as without traindx, everything measured but activations."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.capture.watched import Recording, batch, watched
from traindx.records import EventKind

pytestmark = [
    pytest.mark.slow,
    # torch's own compiler warns of its own deprecations.
    pytest.mark.filterwarnings("ignore"),
]


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3)
    )


def of_wrapper(net: nn.Module) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
    return torch.compile(net, backend="aot_eager"), None


def of_full_graph(net: nn.Module) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
    return torch.compile(net, backend="aot_eager", fullgraph=True), None


def in_place(net: nn.Module) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
    net.compile(backend="aot_eager")
    return net, None


def of_function(net: nn.Module) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
    @torch.compile(backend="aot_eager")
    def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(net(x), y)

    return net, loss


WAYS = [of_wrapper, of_full_graph, in_place, of_function]


def compiled_training(way: Callable[..., Any], steps: int = 40, *, optimizer_too: bool = False):
    """Losses, and what dynamo counted."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    net = network()
    model, loss_of = way(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    step = torch.compile(optimizer.step, backend="aot_eager") if optimizer_too else optimizer.step
    x, y = batch(rows=16)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y) if loss_of is None else loss_of(x, y)
        loss.backward()
        step()
        losses.append(loss.item())
    counters = torch._dynamo.utils.counters
    counted = {
        "graphs": counters["stats"]["unique_graphs"],
        "breaks": sum(counters["graph_break"].values()),
        "frames": dict(counters["frames"]),
    }
    return losses, copy.deepcopy(counted), torch.get_rng_state()


def assert_all_but_activations_is_measured(recording: Recording, losses: list[float]) -> None:
    names = [param.fqn for param in recording.model().params]
    assert names == ["0.weight", "0.bias", "1.weight", "1.bias", "4.weight", "4.bias"]
    assert recording.values("loss") == losses
    assert recording.sites("grad.l2") == recording.sites("update.ratio") == set(names)
    assert recording.values("norm.tracked", "1")[-1] == len(losses)
    assert recording.sites("norm.running_gap") == {"1"}
    assert recording.sites("output.mean") == set()
    assert "activations are not measured" in recording.notes()
    assert recording.run.steps == len(losses)


@pytest.mark.parametrize("way", WAYS)
def test_a_compiled_model_trains_the_same_graphs_to_the_same_losses(way: Callable[..., Any]):
    bare, graphs, random = compiled_training(way)
    with watched() as recording:
        losses, watched_graphs, watched_random = compiled_training(way)
    assert losses == bare
    assert watched_graphs == graphs
    assert torch.equal(random, watched_random)
    assert_all_but_activations_is_measured(recording, losses)


def test_a_compiled_optimizer_step_is_not_broken_up():
    bare, graphs, _ = compiled_training(of_wrapper, optimizer_too=True)
    with watched() as recording:
        losses, watched_graphs, _ = compiled_training(of_wrapper, optimizer_too=True)
    assert losses == bare
    for counted in ("graphs", "breaks"):
        assert watched_graphs[counted] == graphs[counted]
    assert watched_graphs["frames"]["total"] <= graphs["frames"]["total"]
    assert recording.values("loss") == losses
    assert recording.run.steps >= len(losses) - 1  # the last step is seen by the next forward
    assert recording.sites("grad.l2")


def test_a_compiled_model_is_named_by_its_variable_and_described_as_compiled():
    torch._dynamo.reset()
    with watched() as recording:
        net = network()
        fast = torch.compile(net, backend="aot_eager")
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x, y = batch(rows=16)
        for _ in range(3):
            optimizer.zero_grad()
            F.cross_entropy(fast(x), y).backward()
            optimizer.step()
    model = recording.model()
    assert model.name in ("net", "fast")
    assert model.kind == "Sequential"
    assert model.compiled


def test_a_model_trained_before_it_is_compiled_goes_on_under_its_name():
    torch._dynamo.reset()
    with watched() as recording:
        net = network()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x, y = batch(rows=16)
        for step in range(6):
            if step == 3:
                net.compile(backend="aot_eager")
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()
    assert recording.models == {"net"}
    assert recording.series("grad.l2", "0.weight").steps.tolist() == list(range(6))
    assert recording.series("output.mean", "0").steps.tolist() == [0, 1, 2]


def test_evaluation_of_a_compiled_model_is_counted():
    torch._dynamo.reset()
    with watched() as recording:
        net = network()
        fast = torch.compile(net, backend="aot_eager")
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x, y = batch(rows=16)
        F.cross_entropy(fast(x), y).backward()
        optimizer.step()
        fast.eval()
        with torch.no_grad():
            fast(x)
    assert recording.events(EventKind.EVALUATION) == [{"forwards": 1, "training": False}]
