"""Our layers are torch's: the same numbers, state and class."""

import copy
import inspect
import io
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.norm.modules.layer_cases import ALL, BATCH, STATELESS, TRACKED, Case, same, state
from traindx.norm import modules as ours
from traindx.norm import reference
from traindx.norm.torch_layers import spec_of

cases = pytest.mark.parametrize("case", ALL, ids=str)


def _step(layer: Any, x: Tensor) -> list[Tensor]:
    """Output and gradients of a pass."""
    layer.zero_grad()
    x = x.detach().requires_grad_()
    y = layer(x)
    (y * torch.linspace(-1, 2, y.numel(), dtype=y.dtype).view(y.shape)).sum().backward()
    assert x.grad is not None
    return [y.detach(), x.grad, *(p.grad for p in layer.parameters())]


def _equal(one: list[Tensor], other: list[Tensor]) -> bool:
    pairs = zip(one, other, strict=True)
    return all(a.dtype == b.dtype and a.equal(b) and a.stride() == b.stride() for a, b in pairs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@cases
def test_training_and_evaluation_are_torchs_bit_for_bit(case: Case, dtype: torch.dtype) -> None:
    layer, twin = case.ours().to(dtype), case.torchs().to(dtype)
    for seed in range(3):
        x = case.input(seed, dtype=dtype)
        assert _equal(_step(layer, x), _step(twin, x))
        assert same(state(layer), state(twin))
    layer.eval()
    twin.eval()
    assert _equal(_step(layer, x), _step(twin, x))
    assert same(state(layer), state(twin))
    with torch.no_grad():
        assert layer(x).equal(twin(x))


@pytest.mark.parametrize("case", [*BATCH, *TRACKED], ids=str)
def test_a_half_input_to_float32_layers_gives_torchs_numbers(case: Case) -> None:
    layer, twin = case.ours(), case.torchs()
    x = case.input(dtype=torch.bfloat16)
    assert _equal(_step(layer, x), _step(twin, x))
    assert same(state(layer), state(twin))


@pytest.mark.parametrize("case", [case for case in ALL if len(case.shape) == 4], ids=str)
def test_memory_formats_come_back_as_torch_gives_them(case: Case) -> None:
    x = case.input(dtype=torch.float64).contiguous(memory_format=torch.channels_last)
    y, theirs = case.ours().double()(x), case.torchs().double()(x)
    assert y.stride() == theirs.stride()
    torch.testing.assert_close(y, theirs, rtol=1e-12, atol=1e-12)


@cases
def test_the_numbers_are_those_of_the_exact_core(case: Case) -> None:
    layer = case.ours().double()
    if case.name.startswith("InstanceNorm") and len(case.shape) == 2:
        case = Case(case.name, (1, *case.shape), case.args, case.options)
    x, spec = case.input(), spec_of(layer)
    running = None
    if getattr(layer, "running_mean", None) is not None:
        counted = int(layer.num_batches_tracked)
        running = reference.RunningStats(
            layer.running_mean.clone(), layer.running_var.clone(), counted
        )
    weight = getattr(layer, "weight", None)
    bias = getattr(layer, "bias", None)
    y, dx, *rest = _step(layer, x)
    w, b = (None if p is None else p.detach() for p in (weight, bias))
    dy = torch.linspace(-1, 2, y.numel(), dtype=y.dtype).view(y.shape)
    wanted = reference.backward(spec, dy, x, w)
    torch.testing.assert_close(y, reference.forward(spec, x, w, b), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(dx, wanted.x, rtol=1e-10, atol=1e-10)
    for found, exact in zip(rest, (wanted.weight, wanted.bias), strict=False):
        torch.testing.assert_close(found, exact, rtol=1e-10, atol=1e-10)
    if running is not None:
        after = reference.updated(spec, running, x)
        torch.testing.assert_close(layer.running_mean, after.mean, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(layer.running_var, after.var, rtol=1e-12, atol=1e-12)


@cases
def test_state_dicts_pass_both_ways(case: Case) -> None:
    layer, twin = case.ours(), case.torchs()
    assert list(layer.state_dict()) == list(twin.state_dict())
    assert [name for name, _ in layer.named_buffers()] == [n for n, _ in twin.named_buffers()]
    layer(case.input(dtype=torch.float32))
    twin.load_state_dict(layer.state_dict(), strict=True)
    assert same(state(twin), state(layer))
    twin(case.input(1, dtype=torch.float32))
    layer.load_state_dict(twin.state_dict(), strict=True)
    assert same(state(twin), state(layer))


@cases
def test_a_layer_is_an_instance_of_torchs_and_says_the_same_of_itself(case: Case) -> None:
    layer, twin = case.ours(), case.torchs()
    assert isinstance(layer, type(twin))
    assert repr(layer) == repr(twin)
    assert spec_of(layer) == spec_of(twin)
    assert inspect.signature(type(layer)) == inspect.signature(type(twin))


@cases
def test_layers_are_copied_and_pickled_whole(case: Case) -> None:
    layer = case.ours()
    layer(case.input(dtype=torch.float32))
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    x = case.input(3, dtype=torch.float32)
    loaded = torch.load(file, weights_only=False)
    for other in (copy.deepcopy(layer), loaded):
        assert type(other) is type(layer)
        assert same(state(other), state(layer))
    assert loaded(x).equal(copy.deepcopy(layer)(x))


@pytest.mark.parametrize("case", [c for c in BATCH if "momentum" not in c.options], ids=str)
def test_a_cumulative_average_is_torchs_but_for_rounding(case: Case) -> None:
    layer, twin = case.ours(momentum=None).double(), case.torchs(momentum=None).double()
    for seed in range(5):
        layer(case.input(seed))
        twin(case.input(seed))
    for key, value in twin.state_dict().items():
        torch.testing.assert_close(layer.state_dict()[key], value, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("case", STATELESS, ids=str)
def test_what_keeps_no_statistics_skips_nothing(case: Case) -> None:
    layer = case.ours()
    layer(case.input(dtype=torch.float32) * float("nan"))
    assert getattr(layer, "skipped_batches", None) is None
    assert ours.report(nn.Sequential(layer)) == ()


def test_nothing_is_loaded_before_a_name_is_used() -> None:
    code = "import sys, traindx.norm.modules; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_exported_name_is_there_and_no_other() -> None:
    assert dir(ours) == sorted(ours.__all__)
    for name in ours.__all__:
        assert getattr(ours, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute `BatchNorm4d`"):
        ours.BatchNorm4d  # noqa: B018  # pyright: ignore
