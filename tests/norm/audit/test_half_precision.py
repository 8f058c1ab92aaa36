"""The predicted stall of half-precision statistics against torch's own running update."""

from __future__ import annotations

from typing import Any, cast

import pytest
import torch
from torch import nn

from traindx.norm.audit.check import audit
from traindx.norm.modules.audited import of_model

_STEPS = 30_000


def _stalled(dtype: torch.dtype, momentum: float, *, variance: float) -> Any:
    """A layer that saw the same statistics until nothing moved any more."""
    layer = cast(Any, nn.BatchNorm1d(1, momentum=momentum))
    layer.running_mean = torch.zeros(1, dtype=dtype)
    layer.running_var = torch.ones(1, dtype=dtype)
    half = variance**0.5 / 2**0.5  # two values, unbiased
    batch = torch.tensor([[2.0 - half], [2.0 + half]]).to(dtype)
    layer = layer.to(dtype)
    layer.train()
    for _ in range(_STEPS):
        before = (layer.running_mean.clone(), layer.running_var.clone())
        layer(batch)
        if torch.equal(before[0], layer.running_mean) and torch.equal(before[1], layer.running_var):
            return layer
    raise AssertionError("it never stalled")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("momentum", [0.1, 0.01, 0.005, 0.002])
def test_the_stall_is_within_what_is_predicted(dtype: torch.dtype, momentum: float) -> None:
    layer = _stalled(dtype, momentum, variance=8.0)
    (found,) = [
        one for one in audit(of_model(layer)).found if one.check == "half-precision-statistics"
    ]
    predicted = found.hit.numbers["stall"]
    for reached, right in ((layer.running_mean, 2.0), (layer.running_var, 8.0)):
        off = abs(right - float(reached)) / float(reached)
        assert predicted / 10 <= off <= predicted  # no exaggeration, and no promise either


def test_in_float32_the_same_training_arrives() -> None:
    layer = cast(Any, nn.BatchNorm1d(1, momentum=0.01))
    layer.train()
    for _ in range(3000):
        layer(torch.tensor([[0.0], [4.0]]))
    assert float(layer.running_mean) == pytest.approx(2.0, rel=1e-4)
    assert not [x for x in audit(of_model(layer)).found if x.check.startswith("half")]
