"""A program may free the memory of its tensors and get it back, as sharded training does."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from tests.capture.watched import watched
from traindx.stats import native


@pytest.mark.parametrize("compiled", [True, False])
def test_memory_can_be_resized_after_it_was_measured(compiled: bool, monkeypatch):
    if not compiled:
        monkeypatch.setattr(native, "FUNCTIONS", {})
    model = nn.Sequential(nn.Linear(300, 200), nn.BatchNorm1d(200), nn.ReLU(), nn.Linear(200, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    met: list[Tensor] = [*model.parameters(), *model.buffers()]

    def meet(_part: nn.Module, _inputs: object, output: Tensor) -> None:
        met.append(output)

    for part in model:
        part.register_forward_hook(meet)
    with watched():
        for _ in range(6):
            inputs = torch.randn(256, 300)
            model(inputs).square().mean().backward()
            optimizer.step()
            met += [inputs, *(p.grad for p in model.parameters() if p.grad is not None)]
    assert all(tensor.untyped_storage().resizable() for tensor in met)


def test_a_parameter_can_be_freed_and_filled_again_between_steps():
    model = nn.Linear(8, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watched() as recording:
        for _ in range(3):
            model(torch.randn(4, 8)).sum().backward()
            optimizer.step()
            kept, storage = model.weight.detach().clone(), model.weight.untyped_storage()
            size = storage.nbytes()
            storage.resize_(0)
            storage.resize_(size)
            model.weight.data.copy_(kept)
    assert recording.run.steps == 3


def flattened(model: nn.Module, first: int) -> Tensor:
    """One tensor of which a model's parameters are parts, from the element `first` on."""
    params = [*model.parameters()]
    flat = torch.cat([torch.zeros(first), *(p.detach().reshape(-1) for p in params)])
    for param, part in zip(params, flat[first:].split([p.numel() for p in params]), strict=True):
        param.data = part.view_as(param)
    return flat


class Freed:
    """Memory that is given back, and got again with what was in it."""

    def __init__(self, flat: Tensor) -> None:
        self._flat, self._size = flat, flat.untyped_storage().nbytes()
        self._kept: Tensor | None = None

    def free(self, *_: object) -> None:
        self._kept = self._flat.clone()
        self._flat.untyped_storage().resize_(0)

    def fill(self) -> None:
        if self._kept is not None:
            self._flat.untyped_storage().resize_(self._size)
            self._flat.data.copy_(self._kept)
            self._kept = None


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 4))


@pytest.mark.parametrize("first", [0, 16])
@pytest.mark.parametrize("compiled", [True, False])
def test_parameters_freed_within_a_step_are_left_out_with_the_reason(
    first: int, compiled: bool, monkeypatch
):
    if not compiled:
        monkeypatch.setattr(native, "FUNCTIONS", {})
    model = net()
    memory = Freed(flattened(model, first))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.register_step_post_hook(memory.free)
    with watched() as recording:
        for _ in range(3):
            memory.fill()
            optimizer.zero_grad()
            model(torch.randn(4, 8)).square().mean().backward()
            optimizer.step()
    assert recording.run.steps == 3
    reason = "the step has put something else in its place, or nothing"
    assert recording.skips()["0.weight", "param"] == reason
    assert len(recording.values("grad.absent", "0.weight")) == 3


@pytest.mark.parametrize("first", [0, 16])
def test_weights_freed_after_the_training_are_not_read_at_its_end(first: int):
    model = net()
    memory = Freed(flattened(model, first))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watched() as recording:
        model(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()
        memory.free()
    assert recording.run.steps == 1


def test_parameters_freed_between_forward_and_backward_are_not_read():
    layers = [nn.Linear(8, 8) for _ in range(6)]
    model = nn.Sequential(*[part for layer in layers for part in (layer, nn.Sigmoid())])
    memory = Freed(flattened(model, 16))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watched() as recording:
        for _ in range(3):
            output = model(torch.randn(4, 8))
            output.register_hook(lambda _grad: memory.fill())
            loss = output.square().mean()
            memory.free()
            loss.backward()
            optimizer.step()
    assert len(recording.values("update.ratio", "0.weight")) == 3


def test_outputs_freed_between_forward_and_backward_are_not_read():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watched() as recording:
        for _ in range(3):
            output = model(torch.randn(4, 8)).softmax(-1)
            memory, loss = Freed(output.detach()), (output * output.detach()).mean()
            loss.register_hook(lambda _grad, memory=memory: memory.fill())
            memory.free()
            loss.backward()
            optimizer.step()
    assert recording.run.steps == 3


@pytest.mark.parametrize("first", [0, 16])
def test_gradients_freed_after_each_step_are_not_read(first: int):
    model = net()
    grads = torch.zeros(first + sum(p.numel() for p in model.parameters()))
    parts = grads[first:].split([p.numel() for p in model.parameters()])
    for param, part in zip(model.parameters(), parts, strict=True):
        param.grad = part.view_as(param)
    memory = Freed(grads)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.register_step_post_hook(memory.free)
    with watched() as recording:
        for _ in range(4):
            memory.fill()
            grads.zero_()
            model(torch.randn(4, 8)).square().mean().backward()
            optimizer.step()
    assert recording.run.steps == 4


def test_running_statistics_freed_in_an_evaluation_are_not_read():
    class Counting(nn.Linear):
        def __init__(self) -> None:
            super().__init__(8, 4)
            self.register_buffer("running_mean", torch.zeros(64)[16:])
            self.register_buffer("running_var", torch.ones(64)[16:])

    model = Counting()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watched() as recording:
        for _ in range(3):
            model(torch.randn(4, 8)).square().mean().backward()
            optimizer.step()
            for buffer in model.buffers():
                buffer.untyped_storage().resize_(0)
            with torch.no_grad():
                model.eval()(torch.randn(4, 8))
            model.train()
    assert recording.run.steps == 3
