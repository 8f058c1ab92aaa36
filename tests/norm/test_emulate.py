"""Layers in their input's own type: rounding, accumulation and cancellation as measured."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from traindx.errors import ArgumentError
from traindx.norm.choices import Accumulation, Passes
from traindx.norm.emulate import emulate
from traindx.norm.layers import group_norm, layer_norm, mean_variance
from traindx.norm.presets import preset

X = torch.tensor(np.random.default_rng(0).normal(0, 3, (8, 64)))
W, B = torch.tensor(np.random.default_rng(1).normal(size=(2, 64)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_have_torchs_bits(dtype: torch.dtype) -> None:
    x, w, b = (tensor.to(dtype) for tensor in (X, W, B))
    layer = emulate(preset("torch.LayerNorm"), x, w, b)
    assert layer.dtype == dtype
    assert (layer == functional.layer_norm(x, (64,), w, b)).double().mean() > 0.99
    rms = emulate(preset("torch.RMSNorm"), x, w)
    assert (rms == functional.rms_norm(x, (64,), w)).double().mean() > 0.99


def test_float32_is_within_its_rounding_of_torch() -> None:
    x, w, b = (tensor.float() for tensor in (X, W, B))
    ours = emulate(preset("torch.LayerNorm"), x, w, b)
    assert torch.allclose(ours, functional.layer_norm(x, (64,), w, b), rtol=0, atol=2e-6)


def test_one_pass_in_float32_cancels_as_onnx_function_bodies_do() -> None:
    x = (1e4 + np.arange(4))[None, None].astype(np.float32)
    y = emulate(group_norm(num_groups=1, passes=Passes.ONE), x)
    assert y.ravel() == pytest.approx([-474.3, -158.1, 158.1, 474.3], abs=0.1)
    plain = mean_variance(axes=(2,))
    wrong = emulate(replace(plain, passes=Passes.ONE), x)
    assert wrong.ravel() == pytest.approx([-1.5e9, -5e8, 5e8, 1.5e9])


def test_half_input_overflows_only_where_it_is_not_widened() -> None:
    x = np.array([[300, -300]], np.float16)
    assert emulate(layer_norm(), x).tolist() == [[1, -1]]
    assert emulate(layer_norm(accumulation=Accumulation.INPUT), x).tolist() == [[0, 0]]
    column = np.array([[300], [-300]], np.float16)
    assert emulate(preset("mlx.BatchNorm"), column).ravel().tolist() == [0, 0]


def test_torchs_lrn_overflows_in_half_as_torchs_own_does() -> None:
    x = torch.full((1, 1, 1), 300.0, dtype=torch.float16)
    spec = preset("torch.LocalResponseNorm", size=1, alpha=1.0)
    assert emulate(spec, x).item() == functional.local_response_norm(x, 1, alpha=1.0).item() == 0
    wide = torch.full((1, 1, 1), 300.0, dtype=torch.bfloat16)
    assert emulate(spec, wide).item() > 0


def test_no_eps_is_the_machine_epsilon_of_what_is_computed_in() -> None:
    x = torch.tensor([1e-2], dtype=torch.float16)
    ours = emulate(preset("torch.RMSNorm"), x).item()
    assert ours == functional.rms_norm(x, (1,)).item() > 0.99


def test_llama_rounds_before_the_weight_and_gemma_after() -> None:
    x, w = X.bfloat16(), W.float()
    llama = emulate(preset("transformers.LlamaRMSNorm"), x, w)
    wide = x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)
    assert torch.equal(llama, wide.bfloat16() * w)
    gemma = emulate(preset("transformers.GemmaRMSNorm"), x, w)
    assert gemma.dtype == torch.bfloat16
    assert torch.allclose(gemma.float(), wide * (1 + w), rtol=2**-7, atol=1e-6)


def test_a_scale_per_group_reaches_its_channels() -> None:
    x = np.random.default_rng(0).normal(size=(2, 4, 3)).astype(np.float32)
    w = np.array([2.0, 3.0], np.float32)
    y = emulate(preset("onnx.GroupNormalization-18", num_groups=2), x, w)
    plain = emulate(preset("onnx.GroupNormalization", num_groups=2), x, np.repeat(w, 2))
    assert np.array_equal(y, plain)


def test_spectral_norm_is_not_emulated() -> None:
    with pytest.raises(ArgumentError, match="its u and v are state"):
        emulate(preset("torch.spectral_norm"), X)
