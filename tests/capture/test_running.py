"""Running statistics compared in NumPy and in torch: the same numbers, whoever computes them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from traindx.capture.running import (
    Layers,
    Norms,
    OnDevice,
    OnHost,
    Setting,
    Snapshot,
    running,
    running_mean,
)


def norms(dtype: torch.dtype = torch.float32) -> Norms:
    """Of several sizes and settings, the last without a counter."""
    found = [
        nn.BatchNorm1d(3),
        nn.BatchNorm1d(7, momentum=None),
        nn.BatchNorm1d(1, eps=0.1, momentum=0.5),
        nn.BatchNorm1d(2, momentum=1e-5),
        nn.BatchNorm1d(4),
    ]
    found[-1].num_batches_tracked = None
    held = [(str(i), norm.to(dtype), running(norm)) for i, norm in enumerate(found)]
    return [(fqn, norm, of) for fqn, norm, of in held if of is not None]


def see(layers: Norms, seed: int) -> None:
    """One training pass of each but the first in eval mode."""
    generator = torch.Generator().manual_seed(seed)
    for _, norm, _ in layers:
        values = 1 + 2 * torch.randn(16, norm.num_features, generator=generator)
        norm(values.to(norm.weight.dtype))


def measured(layers: Layers, snapshots: list[Snapshot]) -> dict[str, np.ndarray]:
    """All there is to know of the last step."""
    with np.errstate(all="ignore"):
        step = layers.compared(*snapshots[-2:])
        by_channel = layers.by_channel(step.batch)
        counted = layers.counted(snapshots[-1])
    values = {**step.by_layer, **by_channel, **counted}
    return {name: np.asarray(value) for name, value in values.items()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_host_and_a_device_come_to_the_same_numbers(dtype):
    layers = norms(dtype)
    layers[0][1].eval()
    setting = Setting.of(layers)
    both = OnHost(setting), OnDevice(setting)
    taken = [[where.snapshot(layers)] for where in both]
    for step in range(3):
        see(layers, step)
        for where, snapshots in zip(both, taken, strict=True):
            snapshots.append(where.snapshot(layers))
    host, device = (measured(*pair) for pair in zip(both, taken, strict=True))
    assert host.keys() == device.keys()
    for name, values in host.items():
        assert values == pytest.approx(device[name], rel=1e-12, nan_ok=True), name
    assert host["updates"].tolist() == [0, 1, 1, 1, 0]


def test_rounding_in_buffers_of_half_precision_hides_the_batch():
    for dtype, hidden in ((torch.float32, False), (torch.bfloat16, True)):
        layers = norms(dtype)[2:3]
        where = OnHost(Setting.of(layers))
        taken = [where.snapshot(layers)]
        see(layers, 0)
        found = measured(where, [*taken, where.snapshot(layers)])
        assert math.isnan(found["running_gap"][0]) == hidden
        assert math.isnan(found["batch_mean"][0]) == hidden
        assert math.isfinite(found["running_change"][0])


def test_statistics_loaded_without_their_counter_have_no_initial_weight():
    layers = norms()[:1]
    where = OnHost(Setting.of(layers))
    assert where.initial_weight(where.snapshot(layers)).tolist() == [1.0]
    running_mean(layers[0][1]).add_(1)
    where = OnHost(Setting.of(layers))
    assert where.initial_weight(where.snapshot(layers)).tolist() == [0.0]
