"""How signal and gradient travel through the layers at the start."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.preflight.cases import case_of, codes, finding, labelled, probed
from traindx.run import Run

Initialize = Callable[[Tensor], Any]


def deep(depth: int, activation: type[nn.Module], initialize: Initialize | None = None) -> Any:
    """Layers of 64 units with this activation between them."""
    torch.manual_seed(0)
    layers: list[nn.Module] = [nn.Linear(20, 64)]
    for _ in range(depth - 2):
        layers += [activation(), nn.Linear(64, 64)]
    layers += [activation(), nn.Linear(64, 10)]
    for layer in layers if initialize is not None else []:
        if isinstance(layer, nn.Linear) and initialize is not None:
            initialize(layer.weight)
            nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers)


def he(weight: Tensor) -> None:
    nn.init.kaiming_normal_(weight, nonlinearity="relu")


def look(model: nn.Module, batch: Any = None, loss: Any = None) -> Run:
    case = case_of(model, batch or labelled(64), loss or nn.CrossEntropyLoss())
    return probed(case, "signal-profile")


def numbers(run: Run) -> tuple[float, float]:
    (fall,), (growth,) = run.series("probe.gradient_fall"), run.series("probe.signal_growth")
    return fall.last, growth.last


def test_a_chain_of_sigmoids_vanishes_and_no_gain_mends_it():
    found = finding(look(deep(20, nn.Sigmoid)), "F002")
    assert found.evidence.numbers["fall"] < 1e-12
    assert found.evidence.fix.startswith("No gain mends it")
    assert "nn.ReLU()" in found.evidence.fix


def test_the_bound_of_a_chain_of_sigmoids_is_told_beside_what_is_measured():
    found = finding(look(deep(21, nn.Sigmoid)), "F002")
    assert found.evidence.numbers["bound"] == 0.25**20
    assert "at most 0.25^20 = 9.09e-13" in found.evidence.cause
    assert found.evidence.numbers["fall"] < found.evidence.numbers["bound"]
    assert "bound" not in finding(look(deep(20, nn.ReLU)), "F002").evidence.numbers


@pytest.mark.parametrize(
    ("activation", "depth", "gain"), [(nn.ReLU, 20, math.sqrt(2)), (nn.GELU, 12, 1.52)]
)
def test_the_fix_names_the_gain_that_mends_it(activation: type[nn.Module], depth: int, gain: float):
    run = look(deep(depth, activation))
    fix = finding(run, "F002").evidence.fix
    named = float(fix.partition("std = ")[2].partition(" ")[0])
    assert named == pytest.approx(gain, rel=0.02)

    def mended(weight: Tensor) -> None:
        nn.init.normal_(weight, std=named / math.sqrt(weight[0].numel()))

    fall, _ = numbers(look(deep(depth, activation, mended)))
    assert 0.1 < fall < 10
    assert codes(look(deep(depth, activation, mended))) == []


def test_weights_drawn_too_wide_explode():
    found = finding(look(deep(8, nn.ReLU, nn.init.normal_)), "F002")
    assert found.evidence.numbers["fall"] > 1e4
    assert found.evidence.numbers["growth"] > 1e3
    assert "`0`" in found.evidence.message
    assert "`14`" in found.evidence.message


def test_weights_drawn_too_narrow_vanish():
    tiny = finding(look(deep(8, nn.Tanh, lambda w: nn.init.normal_(w, std=0.01))), "F002")
    assert tiny.evidence.numbers["growth"] < 1e-5


@pytest.mark.parametrize(
    ("depth", "activation", "initialize"),
    [(20, nn.ReLU, he), (8, nn.ReLU, None), (8, nn.Tanh, None), (20, nn.Tanh, nn.init.orthogonal_)],
)
def test_what_keeps_its_size_or_is_not_deep_is_not_reported(
    depth: int, activation: type[nn.Module], initialize: Initialize | None
):
    assert codes(look(deep(depth, activation, initialize))) == []


class Pooled(nn.Module):
    """Six convolutions over many positions, and their mean: each gradient is spread over all."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        widths = [3, 16, 16, 16, 16, 16, 16]
        self.layers = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in pairwise(widths))
        for layer in self.layers:
            he(cast(Any, layer.weight))
        self.head = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = F.relu(layer(x))
        return self.head(x.mean((2, 3)))


def test_a_mean_over_positions_is_no_vanishing():
    batch = torch.randn(4, 3, 40, 40), torch.randint(10, (4,))
    assert codes(look(Pooled(), batch)) == []


class Residual(nn.Module):
    """A branch that begins with zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(64, 64), nn.Linear(64, 64)
        nn.init.zeros_(self.outer.weight)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.outer(F.relu(self.inner(x)))


def test_branches_that_begin_with_zeros_do_not_count():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 64), *(Residual() for _ in range(6)), nn.Linear(64, 10))
    assert codes(look(model)) == []


def test_what_theory_expects_stands_beside_what_is_measured():
    run = look(deep(6, nn.ReLU, he))
    measured = {s.site.fqn: s.last for s in run.series("probe.output_rms")}
    expected = {s.site.fqn: s.last for s in run.series("probe.expected_rms")}
    assert set(measured) == set(expected) == {str(i) for i in range(11)}
    assert all(measured[fqn] == pytest.approx(expected[fqn], rel=0.25) for fqn in measured)


def test_of_few_layers_there_is_nothing_to_say_of_depth():
    run = look(deep(3, nn.Sigmoid))
    assert run.series("probe.output_rms")
    assert not run.series("probe.gradient_fall")
    assert codes(run) == []


def test_a_model_called_with_a_dict_is_looked_at():
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.deep = deep(20, nn.Sigmoid)

        def forward(self, x: Tensor) -> Tensor:
            return self.deep(x)

    run = look(Named(), {"x": labelled(64)[0]}, lambda output: output.square().mean())
    assert codes(run) == ["F002"]
