"""Statistics of every kind of tensor torch has: within their bounds, or a reason in words."""

from __future__ import annotations

import math
import tracemalloc
import warnings
import weakref
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from tests.statistics_ways import way  # noqa: F401
from traindx import stats
from traindx.records import TensorStats
from traindx.stats import (
    batch_share,
    exponents,
    native,
    summarize,
    summarize_all,
    unmeasurable,
)
from traindx.stats.measurable import FLOAT8
from traindx.stats.memory import BLOCK, in_memory_order, pieces

EIGHT_BITS = list(FLOAT8)
BOUNDS = {
    torch.float64: 1e-12,
    torch.float32: 1e-4,
    torch.bfloat16: 1e-4,
    torch.float16: 1e-4,
    **dict.fromkeys(EIGHT_BITS, 1e-6),
}
"""Of the variance, relative, against float64 arithmetic on the very numbers the tensor holds."""

LOOKED_AT_ONE_BY_ONE = 8192
"""Elements of the largest sample that is for zeros only; a larger one is for the extremes, too."""

IN_STRETCHES = 18_000
"""Elements of the largest sample; where more were looked at, all were."""

seeds = st.integers(0, 10_000)


def stats_of(tensor: torch.Tensor, sample_at: int | None = 0) -> TensorStats:
    row = summarize(tensor, sample_at=sample_at)
    return TensorStats(*row.numbers())


def assert_right(tensor: torch.Tensor, bound: float) -> None:
    measured = stats_of(tensor)
    values = tensor.detach().double().resolve_neg().numpy().astype(np.longdouble)
    assert measured.count == values.size
    root = float(np.sqrt(np.mean(values**2)))
    if LOOKED_AT_ONE_BY_ONE < measured.sampled <= IN_STRETCHES:
        assert values.min() <= measured.min < measured.max <= values.max()
        assert {measured.min, measured.max} <= {*values.ravel().tolist()}
        assert max(-measured.min, measured.max) >= root * (1 - 1e-4)
    else:
        assert (measured.min, measured.max) == (values.min(), values.max())
    assert measured.nonfinite in (0, -1)
    off = abs(measured.mean - float(values.mean()))
    assert off <= max(1e-5 * float(values.std()), 1e-15 * root)
    assert measured.m2 == pytest.approx(float(values.size * values.var()), rel=bound, abs=1e-300)


def normal(shape: tuple[int, ...], seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


@pytest.fixture(params=["host", "device"])
def path(request, monkeypatch):
    """Both ways to measure: the second is that of devices, here on the CPU's memory."""
    if request.param == "device":
        monkeypatch.setattr(stats, "_on_host", lambda _tensor: False)
    return request.param


@pytest.mark.parametrize("dtype", BOUNDS)
@given(
    seed=seeds,
    ratio=st.one_of(st.just(0.0), st.floats(-1, 4).map(lambda power: 10**power)),
    sign=st.sampled_from([-1, 1]),
    size=st.integers(2, 5000),
)
def test_the_variance_keeps_its_bound_up_to_a_mean_of_ten_thousand_deviations(
    dtype, seed, ratio, sign, size
):
    tensor = (normal((size,), seed) + sign * ratio).abs().clamp_min(2**-20).mul(sign).to(dtype)
    if bool(tensor.double().isfinite().all()):
        assert_right(tensor, BOUNDS[dtype])


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("ratio", [0.0, 3.0, 3.3, 200.0])
def test_large_tensors_keep_the_bound_either_way(path, dtype, ratio):
    tensor = (normal((300_000,), 1) + ratio).abs().to(dtype)
    assert_right(tensor, BOUNDS[dtype])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("value", [0.1, 0.3, 1.1, 33.3])
def test_sums_of_millions_alike_do_not_drift(path, dtype, value):
    """In one float32 sum, each addend loses the same bits: off by 1e-3 for two million."""
    tensor = torch.full((1 << 21,), value, dtype=dtype)
    tensor[::2] *= -1
    assert_right(tensor, 1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("scale", [1e-37, 1e-30, 1e-21, 1e-17, 1e17, 1e25, 1e37])
def test_squares_that_float32_cannot_hold_are_right_too(path, dtype, scale):
    tensor = (normal((3000,), 2) * scale).to(dtype)
    tensor -= tensor.flip(0).clone()  # no mean that would tell
    assert_right(tensor, 1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("size", [8191, 131_072, 200_000])
@pytest.mark.parametrize("ratio", [0.5, 1.4, 1.5, 2.2, 3.1, 3.3])
def test_a_mean_that_leaves_little_of_the_square_takes_nothing_from_the_bound(dtype, size, ratio):
    """Where all are alike but for the sign, each addend of a float32 sum loses the same bits."""
    share = 0.5 + 0.5 / math.sqrt(1 + ratio**-2)  # of the positive ones: mean = ratio deviations
    for value in (1.0437, 1.4745762711864407, 1.9491525423728815):
        tensor = torch.full((size,), value)
        tensor[int(share * size) :] *= -1
        assert_right(tensor[torch.arange(size) * 7919 % size].to(dtype), 1e-4)


def test_nobody_counts_zeros_where_none_are_asked_for():
    for size in (100, 5000, 40_000, 200_000):
        with_zeros, without = (stats_of(normal((size,), 5), at) for at in (0, None))
        assert with_zeros.sampled > 0
        assert without == replace(with_zeros, sampled=0, zeros=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_extremes_of_a_large_tensor_are_those_of_stretches_that_move_on(dtype, monkeypatch):
    monkeypatch.setattr(native, "FUNCTIONS", {})
    tensor = normal((300, 400), 4).to(dtype)
    tensor[123, 321], tensor[200, 5] = 9.0, -9.0
    found = [summarize(tensor, sample_at=step, start=step) for step in range(20)]
    assert {row.sampled for row in found} <= {*range(15_000, 18_000)}
    assert len({row.max for row in found}) > 5
    assert all(3 < float(row.max) <= 9 for row in found)
    assert (min(float(row.min) for row in found), max(float(row.max) for row in found)) == (-9, 9)
    assert len({(row.total, row.m2) for row in found}) == 1  # which are of all elements


@pytest.mark.parametrize("value", [3.0, -3.0, 1e-3])
def test_few_elements_that_are_not_zero_are_not_missed_in_a_large_tensor(value):
    """As the gradient of an embedding of which a batch uses one row."""
    tensor = torch.zeros(4000, 64)
    tensor[1234] = value
    for step in range(3):
        row = summarize(tensor, start=step)
        assert sorted([row.min, row.max]) == pytest.approx(sorted([0.0, value]))


def test_an_element_that_outweighs_all_others_is_not_missed_in_a_large_tensor():
    tensor = normal((300, 400), 5).float()
    tensor[77, 7] = 1e4
    assert summarize(tensor).max == 1e4


@pytest.mark.parametrize("place", [0, 1, 54_321, 119_999])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_one_element_that_is_not_finite_is_found_anywhere_in_a_large_tensor(place, value):
    tensor = normal((120_000,), 5).float()
    tensor[place] = value
    measured = stats_of(tensor)
    assert measured.nonfinite == 1
    assert math.isnan(value) or value in (measured.min, measured.max)


LAYOUTS = {
    "channels last": lambda x: x.to(memory_format=torch.channels_last),
    "permuted": lambda x: x.permute(3, 0, 2, 1),
    "every second column": lambda x: x[..., ::2],
    "first channels": lambda x: x[:, :5],
    "one channel": lambda x: x[:, 1],
    "long rows apart": lambda x: x.reshape(2, -1)[:, 1:-1],
    "windows": lambda x: x.reshape(-1)[:120_000].unfold(0, 3, 2),
    "repeated": lambda x: x.unsqueeze(1).expand(-1, 3, -1, -1, -1),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64, *EIGHT_BITS[:1]])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_large_tensors_of_any_strides_are_right(path, dtype, layout):
    tensor = LAYOUTS[layout](normal((12, 11, 40, 40), 3).to(dtype))
    assert_right(tensor, BOUNDS[dtype])
    measured, stored = stats_of(tensor, sample_at=5), in_memory_order(tensor)
    if path == "host" and native.row(stored, stored.numel(), zeros=True):
        assert measured.sampled == stored.numel()
    else:
        assert 1000 < measured.sampled <= IN_STRETCHES
    assert float(exponents(tensor, 5).sum()) <= 8192


@given(data=st.data(), seed=seeds, block=st.integers(1, 40))
def test_blocks_of_any_size_cover_each_element_of_any_strides_once(data, seed, block):
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    tensor = normal(tuple(shape), seed).float()
    tensor = tensor.permute(*data.draw(st.permutations(range(len(shape)))))
    for dim in range(len(shape)):
        start = data.draw(st.integers(0, tensor.shape[dim] - 1))
        step = data.draw(st.integers(1, 3))
        tensor = tensor[(slice(None),) * dim + (slice(start, None, step),)]
    parts = list(pieces(in_memory_order(tensor), block))
    assert all(0 < piece.numel() <= block for piece in parts)
    together = torch.cat([piece.reshape(-1) for piece in parts])
    assert torch.equal(together.sort().values, tensor.reshape(-1).sort().values)


@pytest.mark.parametrize("layout", ["channels last", "permuted", "repeated"])
def test_dense_memory_is_read_as_it_lies(layout):
    tensor = LAYOUTS[layout](normal((2, 3, 4, 5), 3))
    assert in_memory_order(tensor).is_contiguous()


def test_a_sample_of_any_strides_is_as_fair_as_one_of_dense_memory():
    tensor = torch.ones(512, 64, 8)[..., ::2]
    tensor[:, :16] = 0
    measured = stats_of(tensor, sample_at=11)
    assert measured.zeros / measured.sampled == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("dtype", [d for d in BOUNDS if d not in EIGHT_BITS[2:]])
@given(
    size=st.integers(1, 300),
    bad=st.lists(st.sampled_from([math.nan, math.inf, -math.inf]), min_size=1, max_size=9),
    step=st.integers(1, 3),
)
def test_what_is_not_finite_is_counted_exactly(dtype, size, bad, step):
    values = torch.cat([torch.tensor(bad), torch.ones(size)])
    tensor = values.to(dtype).repeat_interleave(step)[::step]
    expected = int((~tensor.double().isfinite()).sum())
    assert stats_of(tensor).nonfinite == expected


def test_what_is_not_finite_is_counted_in_a_large_strided_tensor():
    tensor = torch.ones(500, 300, 2)[..., 0]
    tensor[::7, 3] = math.nan
    tensor[1, 1] = math.inf
    measured = stats_of(tensor)
    assert measured.nonfinite == 73
    assert math.isnan(measured.mean)
    assert math.isnan(measured.m2)


@pytest.mark.parametrize("make", [lambda z: z.conj().imag, lambda z: z.conj().imag.t()])
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("rows", [6, 9_000, 60_000])
def test_a_tensor_whose_sign_is_only_noted_is_measured_with_its_sign(make, dtype, rows):
    tensor = make((normal((rows, 5), 2) + 1j * normal((rows, 5), 3)).to(dtype))
    assert tensor.is_neg()
    assert unmeasurable(tensor) == ""
    assert_right(tensor, 1e-5)
    assert float(exponents(tensor).sum()) == float(exponents(-tensor).sum()) > 25
    assert float(batch_share(tensor)) == pytest.approx(float(batch_share(-tensor)))


def test_autocast_and_default_types_do_not_change_what_is_measured():
    tensor = normal((5000,), 4).float() + 100
    expected = stats_of(tensor, 1)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert stats_of(tensor, 1) == expected
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize("size", [9, 9_000, 300_000])
@pytest.mark.parametrize("dtype", BOUNDS)
def test_what_a_user_asked_numpy_to_raise_errors_for_is_no_error_here(dtype, size):
    values = normal((size,), 6)
    extreme = [values * 1e-30, values * 1e38, values * 1e300, torch.zeros(size)]
    extreme.append(torch.cat([values, torch.tensor([math.inf, -math.inf, math.nan])]))
    with np.errstate(all="raise"):
        for tensor in extreme:
            summarize(tensor.abs().to(dtype), sample_at=1)
            exponents(tensor.abs().to(dtype), 1)
            exponents(tensor.abs().to(dtype), 1, 1e-30)
            batch_share(tensor.abs().to(dtype))
        assert np.geterr() == dict.fromkeys(("divide", "over", "under", "invalid"), "raise")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("ratio", [0.0, 2.0, 300.0])
def test_the_number_of_threads_changes_no_bound(threads, dtype, ratio):
    tensor = (normal((300_001,), 8) + ratio).to(dtype)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert_right(tensor, BOUNDS[dtype])
        tensor[[5, 200_000, 300_000]] = torch.tensor([math.inf, math.nan, -math.inf], dtype=dtype)
        measured = stats_of(tensor)
    finally:
        torch.set_num_threads(before)
    assert measured.nonfinite == 3
    assert math.isnan(measured.min)


@pytest.mark.parametrize("size", [9, 9_000, 300_000])
@pytest.mark.parametrize("dtype", BOUNDS)
def test_measuring_keeps_nothing_of_a_tensor_alive(dtype, size):
    tensor = normal((size,), 1).abs().to(dtype)
    storage = weakref.ref(tensor.untyped_storage())
    summarize(tensor, sample_at=1)
    exponents(tensor, 1)
    batch_share(tensor, 1)
    alone = weakref.ref(tensor)
    del tensor
    assert alone() is None
    assert storage() is None


KINDS = st.sampled_from([*BOUNDS, "expanded", "strided", "constant", "odd", "huge", "tiny"])


def drawn(kind: torch.dtype | str, size: int, seed: int) -> torch.Tensor:
    values = normal((size,), seed)
    made = {
        "expanded": lambda: values[:1].expand(size),
        "strided": lambda: values.repeat(2, 2)[:, ::2].half(),
        "constant": lambda: torch.full((size,), 0.3),
        "odd": lambda: torch.cat([values, torch.tensor([math.nan, math.inf])]).float(),
        "huge": lambda: (values * 1e37).float(),
        "tiny": lambda: (values * 1e-35 + 1e-32).float(),
    }
    return made[kind]() if isinstance(kind, str) else values.abs().to(kind)


@given(st.lists(st.tuples(KINDS, st.integers(1, 3000), seeds), max_size=80))
def test_many_tensors_together_have_the_statistics_of_each(kinds):
    tensors = [drawn(*kind) for kind in kinds]
    rows = summarize_all(tensors)
    assert len(rows) == len(tensors)
    for row, tensor in zip(rows, tensors, strict=True):
        alone = summarize(tensor)
        size = math.sqrt(alone.m2 / alone.size) if alone.m2 else abs(alone.min)
        assert row.size == alone.size
        assert row.nonfinite == alone.nonfinite
        assert (row.min, row.max) == pytest.approx(
            (alone.min, alone.max), rel=0, abs=0, nan_ok=True
        )
        off = 1e-5 * size * row.size
        assert row.total == pytest.approx(alone.total, abs=cast(Any, off), rel=1e-12, nan_ok=True)
        assert row.m2 == pytest.approx(alone.m2, rel=1e-4, nan_ok=True)


def test_many_tensors_on_a_device_are_measured_there(monkeypatch):
    monkeypatch.setattr(stats, "_on_host", lambda _tensor: False)
    with NoWaiting():
        rows = summarize_all([torch.ones(3), torch.ones(4, dtype=torch.float16)])
    assert [float(row.total) for row in rows] == [3.0, 4.0]


# -- devices --------------------------------------------------------------------------------------


class NoWaiting(TorchDispatchMode):
    """Refuses what would wait for a device."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert "local_scalar" not in str(func), func
        assert "nonzero" not in str(func) or "count_nonzero" in str(func), func
        assert "bincount" not in str(func), func
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("shape", [(), (7,), (4, 3, 2), (300, 400)])
def test_nothing_waits_for_a_device(monkeypatch, dtype, shape):
    monkeypatch.setattr(stats, "_on_host", lambda _tensor: False)
    tensor = torch.ones(shape).to(dtype)
    with NoWaiting():
        row = summarize(tensor, sample_at=3)
        row.divided(torch.tensor(2.0))
        exponents(tensor, 3)
        if shape:
            batch_share(tensor, 3)
    assert all(isinstance(field, torch.Tensor) and not field.dim() for field in row.fields)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_device_without_data_can_be_measured_which_shows_that_none_is_read(dtype, layout):
    tensor = LAYOUTS[layout](torch.ones(12, 11, 40, 40, dtype=dtype, device="meta"))
    row = summarize(tensor, sample_at=3)
    assert all(isinstance(field, torch.Tensor) and field.is_meta for field in row.fields)


# -- reasons --------------------------------------------------------------------------------------


def freed() -> torch.Tensor:
    tensor = torch.ones(1000, 1000)[3:]
    tensor.untyped_storage().resize_(0)
    return tensor


def fake() -> torch.Tensor:
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        return torch.ones(3)


def nested(layout: torch.layout) -> torch.Tensor:
    return torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=layout)


def quantized() -> torch.Tensor:
    return torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8)


def functional() -> torch.Tensor:
    return cast(Any, torch)._to_functional_tensor(torch.ones(3))


def wrapped() -> torch.Tensor:
    """One that refuses every question."""

    class Refusing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *_args, **_kwargs):
            raise AssertionError

    return torch.ones(3).as_subclass(Refusing)


ODD = {
    "coo": (lambda: torch.eye(4).to_sparse(), "layout sparse_coo"),
    "csr": (lambda: torch.eye(4).to_sparse_csr(), "layout sparse_csr"),
    "csc": (lambda: torch.eye(4).to_sparse_csc(), "layout sparse_csc"),
    "bsr": (lambda: torch.eye(4).to_sparse_bsr((2, 2)), "layout sparse_bsr"),
    "bsc": (lambda: torch.eye(4).to_sparse_bsc((2, 2)), "layout sparse_bsc"),
    "sparse half": (lambda: torch.eye(4).half().to_sparse(), "layout sparse_coo"),
    "mkldnn": (lambda: torch.eye(4).to_mkldnn(), "layout _mkldnn"),
    "nested": (lambda: nested(torch.strided), "a nested tensor has no single shape"),
    "jagged": (lambda: nested(torch.jagged), "tensor subclass NestedTensor"),
    "quantized": (quantized, "dtype quint8 is not a floating-point type"),
    "meta": (lambda: torch.ones(3, device="meta"), "a meta tensor holds no data"),
    "fake": (fake, "tensor subclass FakeTensor"),
    "lazy": (lambda: torch.nn.LazyLinear(3).weight, "tensor subclass UninitializedParameter"),
    "refusing": (wrapped, "tensor subclass Refusing"),
    "all zero": (
        lambda: cast(Any, torch)._efficientzerotensor(3),
        "its memory is not there at present",
    ),
    "functional": (functional, "its memory is not there at present"),
    "freed": (freed, "its memory is not there at present"),
    "empty": (lambda: torch.ones(3, 0), "empty"),
    "empty part": (lambda: torch.ones(3, 4)[1:, 2:2], "empty"),
    "empty half": (lambda: torch.ones(0, dtype=torch.float16), "empty"),
    "empty meta": (lambda: torch.ones(0, device="meta"), "a meta tensor holds no data"),
}


@pytest.mark.parametrize("kind", ODD)
def test_every_odd_kind_of_tensor_has_its_reason(kind):
    make, reason = ODD[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, of kinds in beta or on their way out
        tensor = make()
    assert unmeasurable(tensor) == reason


def bytes_as(dtype: torch.dtype) -> torch.Tensor | None:
    """48 bytes of zeros as this type; None where torch makes no tensor of it."""
    try:
        return torch.zeros(48, dtype=torch.uint8).view(dtype)
    except (RuntimeError, TypeError, ValueError):
        return None


ALL_DTYPES = sorted({d for d in vars(torch).values() if isinstance(d, torch.dtype)}, key=str)


@pytest.mark.parametrize("dtype", [d for d in ALL_DTYPES if bytes_as(d) is not None], ids=str)
def test_every_dtype_of_torch_is_measured_or_has_its_reason(dtype):
    tensor = bytes_as(dtype)
    assert tensor is not None
    reason = unmeasurable(tensor)
    name = str(dtype).removeprefix("torch.")
    assert (reason == "") == (dtype in BOUNDS)
    if reason:
        assert f"dtype {name} " in reason
        return
    assert stats_of(tensor, 2).count == tensor.numel()
    exponents(tensor)
    batch_share(tensor)


def test_a_distributed_tensor_has_its_reason(tmp_path):
    import torch.distributed.tensor as distributed
    from torch.distributed.device_mesh import init_device_mesh

    dist = torch.distributed
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/at", rank=0, world_size=1)
    try:
        mesh = init_device_mesh("cpu", (1,))
        tensor = distributed.distribute_tensor(torch.ones(4, 4), mesh, [distributed.Shard(0)])
        assert unmeasurable(tensor) == "tensor subclass DTensor"
        assert unmeasurable(torch.nn.Parameter(tensor)) == "tensor subclass DTensor"
        assert unmeasurable(tensor.to_local()) == ""
    finally:
        dist.destroy_process_group()


def test_tensors_inside_a_function_transform_have_their_reason():
    reasons: list[str] = []

    def told(x: torch.Tensor) -> torch.Tensor:
        reasons.append(unmeasurable(x))
        return x.sum()

    torch.func.vmap(told)(torch.ones(3, 3))
    torch.func.grad(told)(torch.ones(3))
    assert reasons == ["inside torch.func"] * 2


@pytest.mark.parametrize("transform", [torch.func.vmap, torch.func.grad, torch.func.functionalize])
def test_what_a_function_transform_leaves_behind_has_its_reason(transform):
    kept: list[torch.Tensor] = []

    def keeping(x: torch.Tensor) -> torch.Tensor:
        kept.extend((x, x[1:], 2 * x, (2 * x)[2:], x.view(-1)[1:]))
        return x.sum()

    transform(keeping)(torch.ones(3, 3) if transform is torch.func.vmap else torch.ones(3))
    assert [unmeasurable(tensor) for tensor in kept] == ["inside torch.func"] * 5


def test_no_temporary_is_as_large_as_the_tensor():
    """By the largest tensor that any operation makes."""
    made: list[int] = []

    class Sizes(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            owned = {a.untyped_storage().data_ptr() for a in args if isinstance(a, torch.Tensor)}
            parts = result if isinstance(result, (tuple, list)) else (result,)
            new = [part for part in parts if isinstance(part, torch.Tensor)]
            made.extend(p.numel() for p in new if p.untyped_storage().data_ptr() not in owned)
            return result

    values = normal((24, 11, 40, 40), 3) + 300
    for dtype in BOUNDS:
        for layout in LAYOUTS.values():
            tensor = layout(values.to(dtype))
            with Sizes():
                summarize(tensor, sample_at=1)
                exponents(tensor)
            tracemalloc.start()  # counts the bytes of NumPy's arrays
            summarize(tensor, sample_at=1)
            exponents(tensor)
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert most <= 17 * BLOCK  # two of the size of a block, in float64
    assert 0 < max(made) <= BLOCK < values.numel() / 3
