"""The trace of a layer: its own worked example, torch's numbers, and every kind of layer."""

import math
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import nn

from traindx.errors import ArgumentError
from traindx.norm.presets import preset
from traindx.norm.reference import PowerVectors, RunningStats
from traindx.norm.trace import Given, Line, trace

X = [[1, 2], [3, 0], [5, 4]]


def _by_name(lines: list[Line]) -> dict[str, Any]:
    return {line.name: line.value for line in lines}


def test_the_sheet_is_traced_to_its_last_digit() -> None:
    seed = [[1, 0], [0, 0], [0, 0]]
    lines = trace(preset("torch.BatchNorm1d"), Given(X, [2, 0.5], [-1, 1], seed=seed))
    found = _by_name(lines)
    assert found["mean"].tolist() == [[3.0, 2.0]]
    np.testing.assert_allclose(found["variance_biased"], [[8 / 3, 8 / 3]], rtol=1e-15)
    assert found["variance_unbiased"].tolist() == [[4.0, 4.0]]
    stated = [[-3.449485150, 1.0], [-1.0, 0.387628712], [1.449485150, 1.612371288]]
    np.testing.assert_allclose(found["output"], stated, atol=5e-10)
    assert found["running_mean_after"].tolist() == [0.30000000000000004, 0.2]
    assert found["running_var_after"].tolist() == [1.3, 1.3]
    assert found["num_batches_tracked"].tolist() == 1
    assert found["grad_bias"].tolist() == [1.0, 0.0]
    assert list(found)[:3] == ["x", "mean", "sum_of_squares"]


CASES: list[tuple[str, dict[str, Any], nn.Module, tuple[int, ...]]] = [
    ("torch.BatchNorm1d", {}, nn.BatchNorm1d(3), (5, 3)),
    (
        "torch.BatchNorm2d",
        {"momentum": 0.3, "eps": 1e-3},
        nn.BatchNorm2d(3, 1e-3, 0.3),
        (4, 3, 2, 5),
    ),
    ("torch.BatchNorm1d", {"momentum": None}, nn.BatchNorm1d(3, momentum=None), (5, 3)),
    ("torch.LayerNorm", {"normalized_ndim": 2}, nn.LayerNorm([3, 4]), (2, 3, 4)),
    ("torch.GroupNorm", {"num_groups": 2}, nn.GroupNorm(2, 4), (3, 4, 2)),
    ("torch.RMSNorm", {"eps": 1e-6}, nn.RMSNorm(4, eps=1e-6), (3, 4)),
]


@pytest.mark.parametrize(("name", "options", "layer", "shape"), CASES)
def test_every_value_that_torch_has_too_is_its_own(
    name: str, options: dict[str, Any], layer: nn.Module, shape: tuple[int, ...]
) -> None:
    layer = layer.double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator).double())
    x = torch.randn(*shape, generator=generator).double().requires_grad_()
    seed = torch.randn(*shape, generator=generator).double()
    y = layer(x)
    (y * seed).sum().backward()
    weight, bias = cast(Any, layer.weight), getattr(layer, "bias", None)
    given = Given(
        x.detach().numpy(),
        weight.detach().numpy(),
        None if bias is None else bias.detach().numpy(),
        seed=seed.numpy(),
    )
    found = _by_name(trace(preset(name, **options), given))
    expected = {
        "output": y,
        "grad_input": x.grad,
        "grad_weight": weight.grad,
        "grad_bias": None if bias is None else bias.grad,
        "running_mean_after": getattr(layer, "running_mean", None),
        "running_var_after": getattr(layer, "running_var", None),
        "eval_output": layer.eval()(x) if hasattr(layer, "running_mean") else None,
    }
    for key, value in expected.items():
        if value is not None:
            np.testing.assert_allclose(found[key], value.detach().numpy(), atol=1e-11, err_msg=key)


def test_batch_renorm_shows_both_its_corrections() -> None:
    running = RunningStats([2.0, 2.5], [1.0, 4.0], 3)
    spec = preset("paper.BatchRenorm")
    assert spec.eps is not None
    found = _by_name(trace(spec, Given(X, running=running)))
    root = np.sqrt(np.array([1.0, 4.0]) + spec.eps)
    np.testing.assert_allclose(found["divisor"], [[math.sqrt(8 / 3 + spec.eps)] * 2], rtol=1e-12)
    np.testing.assert_allclose(found["r"][0], found["divisor"][0] / root, rtol=1e-12)
    np.testing.assert_allclose(
        found["d"][0], (np.array([3.0, 2.0]) - [2.0, 2.5]) / root, rtol=1e-12
    )
    rebuilt = found["centered"] / found["divisor"] * found["r"] + found["d"]
    np.testing.assert_allclose(found["normalized"], rebuilt, rtol=1e-12)


def test_spectral_normalization_shows_its_vectors_and_sigma() -> None:
    weight = np.array([[3.0, 0.0], [0.0, 1.0]])
    start = PowerVectors([1.0, 0.0], [math.sqrt(0.5), math.sqrt(0.5)])
    found = _by_name(trace(preset("torch.spectral_norm"), Given(weight, running=start)))
    np.testing.assert_allclose(found["u"], np.array([3.0, 1.0]) / math.sqrt(10), rtol=1e-12)
    sigma = found["u"] @ weight @ found["v"]
    assert float(found["sigma"]) == pytest.approx(sigma)
    np.testing.assert_allclose(found["output"], weight / sigma)


def test_a_window_and_a_norm_of_a_weight_have_their_formula() -> None:
    (x, output) = trace(preset("torch.LocalResponseNorm", size=2), Given(X))
    assert (x.name, output.name) == ("x", "output")
    assert "1 before to 0 after along axis 1" in output.formula
    found = {line.name: line.formula for line in trace(preset("torch.weight_norm"), Given(X))}
    assert found["divisor"] == "sqrt(sum_of_squares)"


@pytest.mark.parametrize("name", ["torch.BatchNorm1d", "keras.BatchNormalization", "onnx.LRN"])
def test_nothing_is_traced_of_what_a_layer_refuses(name: str) -> None:
    options = {"size": 3} if name == "onnx.LRN" else {}
    with pytest.raises(ArgumentError, match="finite numbers"):
        trace(preset(name, **options), Given([[1.0, math.nan]]))


def test_a_gradient_of_another_shape_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"the output's shape \(3, 2\); got \(2,\)"):
        trace(preset("torch.LayerNorm"), Given(X, seed=[1, 0]))
