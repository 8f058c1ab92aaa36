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
