"""Statistics of a tensor against NumPy in float64, whatever its type, strides and values."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.statistics_ways import way  # noqa: F401
from traindx import stats
from traindx.quantities import EXPONENTS
from traindx.records import TensorStats
from traindx.stats import batch_share, exponents, sampled, summarize, unmeasurable

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


def stats_of(tensor: torch.Tensor, sample_at: int | None = None) -> TensorStats:
    row = summarize(tensor, sample_at=sample_at)
    return TensorStats(*row.numbers())


def assert_equals_numpy(tensor: torch.Tensor, *, rel: float) -> None:
    """Compare with two passes in float64; the variance relative to itself."""
    stats, values = stats_of(tensor), tensor.detach().double().numpy()
    assert stats.count == values.size
    assert (stats.min, stats.max) == (values.min(), values.max())
    scale = math.sqrt(np.mean(values**2))
    assert stats.mean == pytest.approx(values.mean(), rel=rel, abs=rel * scale)
    assert stats.m2 == pytest.approx(values.size * values.var(), rel=rel, abs=1e-300)
    assert stats.nonfinite == 0


def normal(shape: tuple[int, ...], seed: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


shapes = st.lists(st.integers(1, 9), min_size=0, max_size=4).map(tuple)
seeds = st.integers(0, 10_000)


@given(shape=shapes, seed=seeds, dtype=st.sampled_from(DTYPES))
def test_every_type_and_shape_agrees_with_numpy(shape, seed, dtype):
    assert_equals_numpy(normal(shape, seed, dtype), rel=1e-10 if dtype is torch.float64 else 1e-5)


@given(
    shape=st.lists(st.integers(2, 7), min_size=2, max_size=4).map(tuple),
    seed=seeds,
    data=st.data(),
)
def test_every_layout_in_memory_agrees_with_numpy(shape, seed, data):
    tensor = normal(shape, seed)
    order = data.draw(st.permutations(range(len(shape))))
    tensor = tensor.permute(*order)
    tensor = tensor[..., :: data.draw(st.integers(1, 3))]
    if data.draw(st.booleans()):
        tensor = tensor.unsqueeze(0).expand(3, *tensor.shape)
    assert_equals_numpy(tensor, rel=1e-5)


def test_channels_last_is_read_without_a_copy():
    tensor = normal((4, 8, 6, 6), 0).to(memory_format=torch.channels_last)
    assert_equals_numpy(tensor, rel=1e-6)


@given(
    seed=seeds,
    ratio=st.floats(0, 4).map(lambda power: 10**power),
    sign=st.sampled_from([-1, 1]),
    scale=st.floats(-6, 6).map(lambda power: 10**power),
    size=st.integers(2, 5000),
)
def test_the_variance_is_right_however_large_the_mean(seed, ratio, sign, scale, size):
    wide = (normal((size,), seed, torch.float64) + sign * ratio) * scale
    for tensor, rel in ((wide, 1e-10), (wide.float(), 1e-4)):
        stats, values = stats_of(tensor), tensor.double().numpy()
        assert stats.m2 == pytest.approx(size * values.var(), rel=rel)
        assert stats.mean == pytest.approx(values.mean(), rel=1e-5)


@pytest.mark.parametrize("ratio", [0.0, 1.0, 3.1, 3.2, 1e2, 1e4])
def test_the_variance_of_two_million_elements_is_right(ratio):
    tensor = normal((1 << 21,), 1) + ratio
    values = tensor.double().numpy()
    assert stats_of(tensor).m2 == pytest.approx(values.size * values.var(), rel=1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_constant_has_no_variance(dtype):
    stats = stats_of(torch.full((1000,), 0.1, dtype=dtype))
    assert stats.m2 / stats.count < 1e-20
    assert stats.mean == pytest.approx(float(torch.tensor(0.1, dtype=dtype)))


@pytest.mark.parametrize("value", [1e25, -3e38])
def test_squares_that_overflow_are_computed_in_double(value):
    tensor = torch.tensor([value, value / 2, 0.0])
    assert_equals_numpy(tensor, rel=1e-6)


def test_half_precision_sums_do_not_overflow():
    tensor = torch.full((4000,), 300.0, dtype=torch.float16)
    tensor[::2] = 100.0
    assert_equals_numpy(tensor, rel=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [(math.nan,), (math.inf,), (-math.inf, math.nan, math.inf)])
def test_elements_that_are_not_finite_are_counted(dtype, bad):
    tensor = normal((100,), 0, dtype)
    tensor[: len(bad)] = torch.tensor(bad)
    stats = stats_of(tensor)
    assert stats.nonfinite == len(bad)
    assert math.isnan(stats.mean)
    assert math.isnan(stats.m2)
    assert stats.count == 100


def test_a_scalar_and_a_single_element_are_measured():
    for tensor in (torch.tensor(3.0), torch.full((1, 1, 1), 3.0)):
        stats = stats_of(tensor)
        assert (stats.count, stats.mean, stats.m2, stats.min, stats.max) == (1, 3.0, 0.0, 3.0, 3.0)


@given(size=st.integers(1, 4095), zeros=st.floats(0, 1), seed=seeds)
def test_zeros_of_a_small_tensor_are_counted_exactly(size, zeros, seed):
    tensor = normal((size,), seed)
    tensor[: int(zeros * size)] = 0
    stats = stats_of(tensor, sample_at=seed)
    assert stats.sampled == size
    assert stats.zeros == int((tensor == 0).sum())


@pytest.mark.parametrize("columns", [32, 64, 256, 1024])
@pytest.mark.parametrize("dead", [1, 4, 16])
def test_dead_columns_are_sampled_fairly(columns, dead):
    """A stride that divides the row would see all or none of them."""
    tensor = torch.ones(4096 * 64 // columns, columns)
    tensor[:, :dead] = 0
    for step in range(5):
        stats = stats_of(tensor, sample_at=step)
        assert stats.sampled >= 3000
        assert stats.zeros / stats.sampled == pytest.approx(dead / columns, abs=0.01)


@given(
    shape=st.lists(st.sampled_from([2, 3, 8, 30, 64]), min_size=1, max_size=4).map(tuple),
    start=st.integers(0, 100_000),
)
def test_a_sample_is_about_four_thousand_elements_or_all(shape, start):
    flat = torch.arange(math.prod(shape))
    sample = sampled(flat, torch.Size(shape), start)
    assert sample.numel() == min(flat.numel(), sample.numel())
    assert sample.numel() >= min(flat.numel(), 1000)
    assert sample.numel() <= 2 * 4096
    assert len(set(sample.tolist())) == sample.numel()


@given(sizes=st.lists(st.integers(1, 400), min_size=1, max_size=6), seed=seeds, data=st.data())
def test_parts_merged_in_any_order_equal_the_whole(sizes, seed, data):
    whole = normal((sum(sizes),), seed, torch.float64) + 5
    parts = [stats_of(part, sample_at=0) for part in whole.split(sizes)]
    merged = TensorStats(0, 0.0, 0.0, 0.0, 0.0)
    for part in data.draw(st.permutations(parts)):
        merged = merged.merge(part)
    expected = stats_of(whole, sample_at=0)
    assert (merged.count, merged.min, merged.max) == (expected.count, expected.min, expected.max)
    assert merged.mean == pytest.approx(expected.mean, rel=1e-12)
    assert merged.m2 == pytest.approx(expected.m2, rel=1e-9)
    assert merged.sampled == expected.sampled


@given(seed=seeds, power=st.integers(0, 24), offset=st.sampled_from([0.0, 1e3]))
def test_a_row_divided_by_a_scale_is_the_row_of_the_divided_tensor(seed, power, offset):
    tensor, scale = normal((200,), seed) + offset, float(2**power)
    row = summarize(tensor * scale).divided(scale)
    stats, expected = TensorStats(*row.numbers()), stats_of(tensor)
    assert stats.mean == pytest.approx(expected.mean, rel=1e-9, abs=1e-9)
    assert stats.m2 == pytest.approx(expected.m2, rel=1e-4)
    assert (stats.min, stats.max) == (expected.min, expected.max)


def test_summarizing_leaves_no_trace_on_the_tensor():
    tensor = normal((10,), 0).requires_grad_()
    version, state = tensor._version, torch.get_rng_state()
    summarize(tensor, sample_at=3)
    assert tensor._version == version
    assert tensor.grad_fn is None
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("dtype", DTYPES)
def test_ordinary_tensors_and_parameters_are_measurable(dtype):
    assert unmeasurable(torch.ones(3, dtype=dtype)) == ""
    assert unmeasurable(torch.nn.Parameter(torch.ones(3, dtype=dtype))) == ""


def test_what_cannot_be_measured_says_why():
    assert unmeasurable(torch.ones(3, dtype=torch.int64)) == (
        "dtype int64 is not a floating-point type"
    )
    assert unmeasurable(torch.ones(3, dtype=torch.complex64)) == "dtype complex64 has no order"
    assert unmeasurable(torch.ones(0)) == "empty"
    assert unmeasurable(torch.ones(3, device="meta")) == "a meta tensor holds no data"
    assert unmeasurable(torch.eye(3).to_sparse()) == "layout sparse_coo"


# -- samples --------------------------------------------------------------------------------------


def share(tensor: torch.Tensor) -> float:
    """The share by NumPy in float64, over all entries."""
    values = tensor.detach().double().numpy()
    return float(values.var(axis=0).mean() / np.square(values).mean())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2,), (9,), (128, 3), (7, 31), (16, 2, 4, 4)])
def test_the_share_of_a_small_batch_is_exact(shape, dtype):
    tensor = 3 + normal(shape, 4, dtype)
    assert float(batch_share(tensor)) == pytest.approx(share(tensor), rel=1e-12)


@pytest.mark.parametrize("true", [1e-2, 1e-6, 1e-10, 1e-12])
def test_a_tiny_share_is_measured_right(true):
    tensor = (1 + math.sqrt(true) * normal((128, 32), 1, torch.float64)).float()
    assert float(batch_share(tensor)) == pytest.approx(share(tensor), rel=1e-9)
    if true >= 1e-10:  # float32 itself rounds the smallest
        assert float(batch_share(tensor)) == pytest.approx(true, rel=0.1)


def test_the_share_is_0_where_all_samples_agree_and_unknown_where_all_are_0():
    row = normal((1, 50), 0)
    assert float(batch_share(row.expand(64, 50))) == 0.0
    assert math.isnan(float(batch_share(torch.zeros(64, 50))))


@pytest.mark.parametrize(
    "layout",
    [
        lambda x: x,
        lambda x: x.to(memory_format=torch.channels_last),
        lambda x: x.permute(1, 0, 2, 3).contiguous().permute(1, 0, 2, 3),
        lambda x: x[:, :, ::2],
        lambda x: x.flip(0)[1:],
    ],
)
def test_the_share_of_a_large_batch_is_that_of_its_samples_in_every_layout(layout):
    # Entries differ between samples by a part that is the same in all of them.
    tensor = 2 + normal((300, 1, 1, 1), 0) + torch.zeros(300, 24, 16, 16)
    assert float(batch_share(layout(tensor))) == pytest.approx(share(layout(tensor)), rel=0.3)


def test_the_share_of_a_large_batch_looks_at_every_part_of_a_sample():
    tensor = torch.ones(64, 8, 64)
    tensor[:, :, 32:] += normal((64, 8, 32), 0)  # a stride of 16 would stay in a few columns
    assert float(batch_share(tensor)) == pytest.approx(share(tensor), rel=0.3)


ODD = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, 1.99, 2.0, -0.5, 2.0**-39, 2.0**-41, 1e-45]
ODD += [5e-310, 2.0**15, 2.0**16, 2.0**17, -(2.0**100)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_exponents_agree_with_logarithms(dtype):
    tensor = torch.cat([torch.tensor(ODD, dtype=torch.float64).to(dtype), normal((300,), 2, dtype)])
    values = np.abs(tensor.double().numpy())
    values = values[np.isfinite(values) & (values > 0)]
    places = np.clip(np.floor(np.log2(values)), EXPONENTS[0], EXPONENTS[-1]).astype(int)
    expected = np.bincount(places - EXPONENTS[0], minlength=len(EXPONENTS))
    assert exponents(tensor).tolist() == expected.tolist()


def test_exponents_are_those_of_the_tensor_without_its_loss_scale():
    tensor = normal((500,), 3)
    assert torch.equal(exponents(tensor * 1024, scale=1024.0), exponents(tensor))
    assert torch.equal(exponents(tensor * 1024, scale=torch.tensor(1024.0)), exponents(tensor))


def test_exponents_look_at_about_4096_elements():
    assert 3500 < float(exponents(normal((64, 64, 64), 5)).sum()) <= 4096


def test_exponents_are_counted_alike_where_the_device_must_not_be_waited_for(monkeypatch):
    tensor = torch.cat([torch.tensor(ODD), normal((300,), 2)])
    expected = exponents(tensor)

    def wait(*_args: object, **_kwargs: object) -> None:
        raise AssertionError

    monkeypatch.setattr(torch, "bincount", wait)
    monkeypatch.setattr(stats, "_on_host", lambda _tensor: False)
    assert torch.equal(exponents(tensor), expected)


@given(shape=st.tuples(*[st.integers(1, 5)] * 3), seed=seeds, offset=st.sampled_from([0.0, 1e4]))
def test_an_expanded_tensor_agrees_with_numpy(shape, seed, offset):
    tensor = (normal((shape[0], 1, shape[1], 1), seed) + offset).expand(-1, 3, -1, shape[2])
    assert_equals_numpy(tensor, rel=1e-4)


def test_an_expanded_tensor_is_not_written_out():
    tensor = torch.tensor([[1.0], [3.0]]).expand(2, 1 << 40)
    stats = stats_of(tensor, sample_at=0)
    assert (stats.count, stats.mean, stats.min, stats.max) == (2 << 40, 2.0, 1.0, 3.0)
    assert float(exponents(tensor).sum()) == 2
    assert float(batch_share(tensor)) == pytest.approx(1 / 5)
