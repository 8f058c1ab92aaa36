"""Training on a GPU: never waited for, never changed, and measured as on the CPU."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor, nn

from benchmarks.costs.programs import PROGRAMS
from tests.capture.devices import reader
from tests.capture.trainings import STEPS, TRAININGS
from tests.capture.watched import Recording, watched
from traindx.capture.transfer import Copy, TorchHost
from traindx.records import EventKind, Item, Record, Scalar, Vector


@pytest.fixture(autouse=True)
def exact_arithmetic() -> Iterator[None]:
    """The same bits in every run, and float32 where float32 is written."""
    cudnn = torch.backends.cudnn
    before = cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32
    cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32 = True, False, False
    torch.use_deterministic_algorithms(True, warn_only=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*deterministic.*")
        yield
    torch.use_deterministic_algorithms(False)
    cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32 = before


@contextmanager
def waits() -> Iterator[list[str]]:
    """Where somebody waits for the device: places of traindx by name, those of others as ''."""
    found: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: (
            found.append(reader()) if "synchronizing" in str(message) else None
        )
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield found
        finally:
            torch.cuda.set_sync_debug_mode("default")


def test_waiting_is_seen():
    with waits() as found:
        torch.ones((), device="cuda").item()
    assert found == [""]


@pytest.mark.parametrize("name", TRAININGS)
def test_no_training_waits_for_its_device(name: str):
    with waits() as found, watched() as recording:
        TRAININGS[name]("cuda")
    assert [place for place in found if place] == []
    assert recording.run.steps > 0


def test_a_measured_step_is_one_copy(monkeypatch: pytest.MonkeyPatch):
    fetched: list[int] = []
    original = TorchHost.fetch

    def fetch(self: TorchHost, packed: Tensor) -> Copy:
        fetched.append(packed.numel())
        return original(self, packed)

    monkeypatch.setattr(TorchHost, "fetch", fetch)
    with watched():
        TRAININGS["mlp"]("cuda")
    assert len(fetched) == STEPS


def measured(recording: Recording) -> dict[object, list[float]]:
    """The numbers of the first two steps, before rounding has grown."""
    return {key: values for key, values in map(_numbers, recording.items) if key is not None}


def _numbers(item: Item) -> tuple[object, list[float]]:
    if item.step > 1:
        return None, []
    match item:
        case Record(step, site, point, stats):
            return (step, site, point), [stats.mean, stats.m2, stats.min, stats.max]
        case Scalar(step, quantity, value, site) if quantity != "step.seconds":
            return (step, quantity, site), [value]
        case Vector(step, quantity, site, values) if not quantity.endswith("exponents"):
            return (step, quantity, site), [*values]
        case _:
            return None, []


@pytest.mark.parametrize("name", sorted(TRAININGS.keys() - {"half", "sparse"}))
def test_the_numbers_are_those_of_the_cpu(name: str):
    with watched() as here:
        TRAININGS[name]("cpu")
    with watched() as there:
        TRAININGS[name]("cuda")
    expected, found = measured(here), measured(there)
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        assert found[key] == pytest.approx(values, rel=2e-3, abs=1e-4, nan_ok=True), key


@pytest.mark.parametrize("name", TRAININGS)
def test_losses_are_the_same_to_the_last_bit(name: str):
    bare = [float(loss) for loss in TRAININGS[name]("cuda")]
    with watched():
        assert [float(loss) for loss in TRAININGS[name]("cuda")] == bare


def peak(name: str) -> int:
    """Bytes of the device in use at most in a few steps."""
    training = PROGRAMS[name].make()
    model, optimizer = training.model.cuda(), training.optimizer
    inputs, labels = training.inputs.cuda(), training.labels.cuda()
    torch.cuda.reset_peak_memory_stats()
    for _ in range(5):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    return torch.cuda.max_memory_allocated()


@pytest.mark.parametrize("name", PROGRAMS)
def test_memory_grows_by_a_twentieth_at_most(name: str):
    peak(name)  # what libraries keep for themselves
    bare = peak(name)
    with watched():
        assert peak(name) <= 1.05 * bare


def test_a_training_on_a_stream_of_its_own_is_measured():
    with watched() as here:
        TRAININGS["mlp"]("cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with watched() as there, torch.cuda.stream(stream):
        TRAININGS["mlp"]("cuda")
    assert measured(there) == measured(here)


def test_a_graph_is_captured_and_replayed_as_without():
    def replayed() -> float:
        torch.manual_seed(0)
        net, x = nn.Linear(8, 8).cuda(), torch.ones(4, 8, device="cuda")
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                net(x).square().mean().backward()
        torch.cuda.current_stream().wait_stream(side)
        net.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = net(x).square().mean()
            loss.backward()
        graph.replay()
        assert net.weight.grad is not None
        return float(loss) + float(net.weight.grad.sum())

    bare = replayed()
    with watched() as recording:
        assert replayed() == bare
    assert "CUDA graph" in recording.notes()


def test_what_a_killed_process_loses_is_at_most_one_measured_step():
    with watched() as recording:
        TRAININGS["lstm"]("cuda")
        torch.cuda.synchronize()
        assert recording.run.step >= STEPS - 2
    assert [event.step for event in recording.run.events(EventKind.MEASURED)] == [*range(STEPS)]
