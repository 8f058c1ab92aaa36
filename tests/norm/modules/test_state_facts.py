"""Normalization read off a state's tensors: torch's own states, and what no module has made."""

from __future__ import annotations

import time
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import spectral_norm as legacy
from torch.nn.utils.parametrizations import spectral_norm

from traindx.norm.audit.facts import Family, Layer
from traindx.norm.modules.state_facts import layers_of, spectral_facts


def reason(state: dict[str, Tensor]) -> str:
    layers, (malformed,) = layers_of(state)
    assert not [layer for layer in layers if layer.statistics]
    assert malformed.fqn == "bn"
    return str(malformed.reason)


def bn(**changes: Tensor | None) -> dict[str, Tensor]:
    state: dict[str, Tensor | None] = {
        "bn.weight": torch.ones(3),
        "bn.bias": torch.zeros(3),
        "bn.running_mean": torch.zeros(3),
        "bn.running_var": torch.ones(3),
        "bn.num_batches_tracked": torch.tensor(5),
    }
    state |= {f"bn.{name}": value for name, value in changes.items()}
    return {name: value for name, value in state.items() if value is not None}


def test_each_layer_of_a_model_is_found_by_its_name_with_its_numbers() -> None:
    model = nn.Sequential(
        nn.Conv1d(2, 3, 1), nn.BatchNorm1d(3), nn.LayerNorm(4), nn.GroupNorm(1, 3), nn.PReLU()
    )
    model(torch.randn(6, 2, 4))
    layers, malformed = layers_of(model.state_dict())
    assert not malformed
    assert [layer.fqn for layer in layers] == ["1", "2", "3"]
    found = layers[0].statistics
    assert found is not None
    np.testing.assert_array_equal(found.mean, cast(Any, model[1]).running_mean.double().numpy())
    np.testing.assert_array_equal(found.var, cast(Any, model[1]).running_var.double().numpy())
    assert (found.dtype, found.batches) == ("float32", 1)


def test_a_bare_layer_has_an_empty_name() -> None:
    layers, _ = layers_of(nn.BatchNorm1d(3).state_dict())
    assert [layer.fqn for layer in layers] == [""]


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (bn(running_var=None), "only one of running mean and running variance"),
        (bn(running_mean=None), "only one of running mean and running variance"),
        (bn(running_var=torch.ones(4)), "(3,) and its running variance (4,)"),
        (bn(running_mean=torch.ones(0), running_var=torch.ones(0)), "(0,)"),
        (bn(weight=torch.ones(5)), "(3,) and its weight (5,)"),
        (bn(num_batches_tracked=torch.ones(2)), "no single number"),
        (bn(num_batches_tracked=torch.tensor(float("nan"))), "no single number"),
        (bn(num_batches_tracked=torch.tensor(1j)), "complex"),
        (bn(running_mean=torch.ones(3, dtype=torch.complex64)), "complex"),
        (bn(running_mean=torch.ones(3, device="meta")), "cannot be read"),
    ],
)
def test_what_is_no_statistics_is_told_with_its_reason(state: dict[str, Tensor], why: str) -> None:
    assert why in reason(state)


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_quantized_statistics_are_told() -> None:
    var = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8)
    assert "cannot be read" in reason(bn(running_var=var))


def test_numbers_that_are_claimed_but_not_stored_are_not_made() -> None:
    many = torch.zeros(1).expand(10**12)
    with_weight = bn(running_mean=many, running_var=many, weight=None, bias=None)
    assert "claims 1,000,000,000,000 numbers where 1 are stored" in reason(with_weight)
    nothing = torch.sparse_coo_tensor(
        torch.zeros((1, 0)), torch.zeros(0), (10**12,), check_invariants=True
    )
    assert "claims" in reason(bn(running_mean=nothing, running_var=nothing, weight=None, bias=None))
    state = {"fc.weight_orig": many.view(10**6, 10**6), "fc.weight_u": torch.zeros(10**6)}
    assert "claims" in str(layers_of(state)[1][0].reason)


def test_small_sparse_statistics_are_read() -> None:
    layers, malformed = layers_of(bn(running_mean=torch.tensor([1.0, 0, 2]).to_sparse()))
    assert not malformed
    assert layers[0].statistics is not None
    assert layers[0].statistics.mean.tolist() == [1, 0, 2]


def test_statistics_of_other_things_are_none_of_a_normalization() -> None:
    state = {"center.running_mean": torch.zeros(3), "obs.running_mean": torch.zeros(2, 2)}
    assert layers_of(state) == ([], [])
    layers, malformed = layers_of(state | {"obs.running_var": torch.ones(2, 2)})
    assert ([layer.fqn for layer in layers], malformed) == (["obs"], [])


def test_what_is_no_tensor_is_passed_over() -> None:
    odd: dict[str, object] = {"bn.weight": 7, "bn.running_mean": "text", "x._extra_state": None}
    assert layers_of(odd) == ([], [])
    assert [layer.fqn for layer in layers_of({**bn(), "q.weight": object()})[0]] == ["bn"]


def test_three_hundred_thousand_entries_take_seconds() -> None:
    state = {f"l{i}.running_mean": torch.zeros(1) for i in range(200)}
    one = torch.zeros(1)
    state |= {f"l{i}.weight": one for i in range(300_000)}
    start = time.process_time()
    layers_of(state)
    assert time.process_time() - start < 10


# -- spectral normalization -----------------------------------------------------------------------


def only(model: nn.Module) -> Layer:
    layers, malformed = layers_of(model.state_dict())
    (layer,) = [each for each in layers if each.family is Family.SPECTRAL]
    assert not malformed
    return layer


@pytest.mark.parametrize("wrap", [spectral_norm, legacy], ids=["parametrization", "legacy"])
@pytest.mark.parametrize(
    "inner",
    [
        lambda: nn.Linear(5, 7),
        lambda: nn.Conv2d(3, 6, 3),
        lambda: nn.ConvTranspose2d(4, 6, 3),
        lambda: nn.ConvTranspose1d(4, 4, 4),
    ],
    ids=["linear", "conv", "transposed", "square"],
)
def test_the_estimate_is_what_torch_divides_by(wrap: Any, inner: Any) -> None:
    torch.manual_seed(0)
    module = inner()
    weight = module.weight.detach().double().clone()
    layer = wrap(module)
    for _ in range(60):
        if wrap is legacy:
            layer(torch.randn(2, weight.shape[0 if "Transpose" in type(layer).__name__ else 1], *(
                [5] * (weight.dim() - 2))))  # fmt: skip
        else:
            _ = layer.weight  # in training mode, reading it iterates
    layer.eval()
    facts = only(layer).spectral
    assert facts is not None
    transposed = "Transpose" in type(inner()).__name__
    front = weight.movedim(1, 0) if transposed else weight
    sigma = float(torch.linalg.matrix_norm(front.flatten(1), 2))
    assert facts.sigma == pytest.approx(sigma, rel=1e-6)
    assert facts.estimate == pytest.approx(sigma, rel=1e-2)
    assert (facts.u, facts.v) == pytest.approx((1, 1), abs=1e-5)


def test_vectors_of_an_averaged_model_are_short() -> None:
    torch.manual_seed(0)
    model = cast(Any, spectral_norm(nn.Linear(16, 16)))
    averaged = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.5), use_buffers=True
    )
    for _ in range(4):  # weights that move turn the vectors
        with torch.no_grad():
            model.parametrizations.weight.original.normal_()
            for _ in range(30):
                _ = model.weight
        averaged.update_parameters(model)
    facts = only(averaged).spectral
    assert facts is not None
    assert facts.length < 0.99
    # What the averaged layer computes has a norm that many times over 1.
    averaged.eval()
    norm = float(torch.linalg.matrix_norm(cast(Any, averaged.module).weight.detach().double(), 2))
    assert abs(facts.times) == pytest.approx(norm, rel=1e-4)


@pytest.mark.parametrize("shape", [(40, 30), (700, 900), (900, 700, 1)])
def test_the_greatest_singular_value_is_found_at_any_size(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    weight = torch.randn(*shape, dtype=torch.float64)
    u = torch.zeros(shape[0], dtype=torch.float64)
    u[0] = 1
    facts = spectral_facts(weight, u, None)
    right = float(torch.linalg.matrix_norm(weight.flatten(1), 2))
    assert facts.sigma == pytest.approx(right, rel=2e-3)
    assert facts.sigma <= right * (1 + 1e-9)


@pytest.mark.parametrize("scale", [1e-200, 1e200, float("inf"), float("nan"), 0.0])
def test_no_size_of_weight_fails(scale: float) -> None:
    weight = torch.randn(6, 5, dtype=torch.float64) * scale
    spectral_facts(weight, torch.ones(6).double(), torch.ones(5).double())


def test_vectors_that_do_not_fit_are_told() -> None:
    state = {"fc.weight_orig": torch.ones(3, 4), "fc.weight_u": torch.ones(5)}
    assert "do not fit" in str(layers_of(state)[1][0].reason)
    state |= {"fc.weight_u": torch.ones(3), "fc.weight_v": torch.ones(3)}
    assert "do not fit" in str(layers_of(state)[1][0].reason)
    assert not layers_of({"fc.weight_u": torch.ones(3)})[1]
