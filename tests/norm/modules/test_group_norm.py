"""GroupNorm in channels_last: where torch's one pass loses the variance, ours does not."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from traindx.norm import reference
from traindx.norm.modules import GroupNorm
from traindx.norm.torch_layers import spec_of

SHAPES = [(2, 8, 4, 5), (2, 8, 3, 4, 5), (1, 8, 5, 1)]
FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def _results(layer: nn.GroupNorm, x: Tensor, dy: Tensor) -> list[Tensor]:
    layer.zero_grad()
    x = x.detach().requires_grad_()
    y = layer(x)
    y.backward(dy)
    assert x.grad is not None
    grads = [p.grad for p in layer.parameters() if p.grad is not None]
    return [y.detach(), x.grad, *grads]


@pytest.mark.parametrize(("dtype", "shift"), [(torch.float32, 4096.0), (torch.float64, 1e8)])
def test_four_numbers_far_from_zero_are_normalized_right(dtype: torch.dtype, shift: float) -> None:
    x = (shift + torch.arange(4, dtype=dtype)).view(1, 1, 2, 2).repeat(1, 2, 1, 1)
    x = x.contiguous(memory_format=torch.channels_last)
    right = torch.tensor([-1.3416, -0.4472, 0.4472, 1.3416], dtype=dtype)
    ours = GroupNorm(1, 2, dtype=dtype)(x)[0, 0].flatten()
    theirs = nn.GroupNorm(1, 2, dtype=dtype)(x)[0, 0].flatten()
    torch.testing.assert_close(ours, right, rtol=0, atol=1e-3)
    assert (theirs - right).abs().max() > 0.2


@pytest.mark.parametrize("mean", [0.0, 1e2, 1e3, 1e4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_no_mean_makes_it_less_exact(
    shape: tuple[int, ...], dtype: torch.dtype, mean: float
) -> None:
    torch.manual_seed(0)
    x, dy = (torch.randn(shape) + mean).to(dtype), torch.randn(shape, dtype=dtype)
    layer = GroupNorm(2, 8, dtype=dtype)
    nn.init.normal_(layer.weight)
    # The exact core of the same numbers, whose mean leaves nothing behind when it is taken off.
    arguments = (spec_of(layer), x.double() - mean, layer.weight.detach().double())
    exact = reference.backward(arguments[0], dy.double(), *arguments[1:])
    y = reference.forward(*arguments, torch.zeros(8).double())
    last = FORMATS[len(shape)]
    for grad in (dy, dy.contiguous(memory_format=last)):
        found = _results(layer, x.contiguous(memory_format=last), grad)
        assert found[0].is_contiguous(memory_format=last)
        bound = 500 * torch.finfo(dtype).eps
        for ours, right in zip(found, (y, exact.x, exact.weight, exact.bias), strict=True):
            torch.testing.assert_close(ours.double(), right, rtol=bound, atol=bound)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_rounded_once(dtype: torch.dtype) -> None:
    x = (torch.randn(2, 8, 5, 7) * 4 + 60).to(dtype).contiguous(memory_format=torch.channels_last)
    layer = GroupNorm(2, 8).to(dtype)
    exact = nn.GroupNorm(2, 8).double()(x.double().flatten(2)).view(x.shape)
    y, dx, *_ = _results(layer, x, torch.randn(x.shape).to(dtype))
    assert y.dtype == dx.dtype == dtype
    half_a_unit = torch.finfo(dtype).eps / 2 * (1 + 1e-2)
    assert ((y - exact).abs() <= half_a_unit * exact.abs() + 1e-6).all()


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_not_finite_stays_in_its_group_as_with_torch(bad: float) -> None:
    x = torch.randn(2, 8, 4, 4).contiguous(memory_format=torch.channels_last)
    x[0, 1, 2, 2] = bad
    ours, theirs = GroupNorm(2, 8)(x), nn.GroupNorm(2, 8)(x)
    assert (ours.isnan() == theirs.isnan()).all()
    assert ours[0, :4].isnan().all()
    assert ours[0, 4:].isfinite().all()


@pytest.mark.parametrize("enabled", [False, True])
def test_the_dtype_is_torchs_under_autocast(enabled: bool) -> None:
    x = torch.randn(2, 8, 4, 4).contiguous(memory_format=torch.channels_last)
    with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
        for given in (x, x.bfloat16()):
            assert GroupNorm(2, 8)(given).dtype == nn.GroupNorm(2, 8)(given).dtype


def test_what_torch_refuses_is_refused_in_its_words() -> None:
    x = torch.randn(2, 8, 4, 4).contiguous(memory_format=torch.channels_last)
    for layer in (GroupNorm(3, 9), nn.GroupNorm(3, 9)):
        with pytest.raises(RuntimeError, match="divisible by num_groups"):
            layer(x)
    empty = x[:0]
    assert GroupNorm(2, 8)(empty).shape == (0, 8, 4, 4)


def test_a_batch_of_one_pixel_each_is_right_where_torch_sees_channels_last() -> None:
    x = torch.empty_strided((3, 8, 1, 1), (8, 1, 8, 8)).copy_(torch.randn(3, 8, 1, 1) + 1e4)
    exact = nn.GroupNorm(2, 8).double()(x.double().flatten(2)).view(x.shape)
    assert (GroupNorm(2, 8)(x).double() - exact).abs().max() < 1e-4
    assert (nn.GroupNorm(2, 8)(x).double() - exact).abs().max() > 0.1


def test_forward_and_backward_are_the_exact_cores_where_torch_is_wrong() -> None:
    torch.manual_seed(0)
    x = (torch.randn(2, 8, 4, 4) + 1e3).contiguous(memory_format=torch.channels_last)
    dy, layer, twin = torch.randn(2, 8, 4, 4), GroupNorm(2, 8), nn.GroupNorm(2, 8)
    exact = reference.backward(spec_of(layer), dy.double(), x.double(), torch.ones(8).double())
    ours, theirs = _results(layer, x, dy)[1], _results(twin, x, dy)[1]
    assert (ours - exact.x).abs().max() < 1e-5
    assert (theirs - exact.x).abs().max() > 0.1


def test_slices_and_permutations_come_out_right() -> None:
    whole = torch.randn(4, 16, 6, 6, dtype=torch.float64)
    last = whole.contiguous(memory_format=torch.channels_last)
    layer, twin = GroupNorm(2, 8).double(), nn.GroupNorm(2, 8).double()
    views: list[Tensor] = [
        last[:, ::2],
        last[1:, 8:],
        last[:, :8, ::2],
        whole[:, :8].transpose(2, 3),
        last[:1, :8].expand(3, 8, 6, 6),
        whole[:, :1].expand(4, 8, 6, 6),
    ]
    for view in views:
        assert layer(view).stride() == twin(view).stride()
        torch.testing.assert_close(layer(view), twin(view.contiguous()), rtol=1e-13, atol=1e-13)


def test_second_derivatives_pass_through() -> None:
    x = torch.randn(2, 4, 2, 3, dtype=torch.float64)
    x = x.contiguous(memory_format=torch.channels_last).requires_grad_()
    layer = GroupNorm(2, 4).double()
    assert torch.autograd.gradcheck(layer, x)
    assert torch.autograd.gradgradcheck(layer, x)
