"""The sums in C: what is read, by which compiler, and what happens where there is none."""

from __future__ import annotations

import importlib.util
import itertools
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.statistics_ways import COMPILED
from traindx.stats import Row, host, native, summarize

ROOT = Path(__file__).resolve().parent.parent
SOURCE = native.LIBRARY.with_name("sums.c")
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
SIZE = 100_003
PLACES = [0, 31, 32, 1695, 1696, 9887, 9888, 99_999, 100_000, SIZE - 1]
"""Where rows and blocks, read from the end, begin and end among so many elements."""
KINDS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "all alike": lambda some: torch.full_like(some, 1 / 3),
    "far from zero": lambda some: some - 1e4,
    "signed zeros": lambda some: torch.where(some < 0.5, -0.0, some),
    "denormal": lambda some: some * 1e-41,
    "squares that vanish": lambda some: some * 1e-25,
    "squares that overflow": lambda some: some * 1e30,
    "one large": lambda some: torch.cat([some[:-1], some.new_tensor([6e4])]),
}
compiled = [SOURCE] if COMPILED else []
"""For tests that there are only where something could be compiled."""


def found_in(tensor: torch.Tensor) -> Row:
    found = native.row(tensor, tensor.numel(), zeros=True)
    assert found is not None
    return found


def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def copied(folder: Path) -> Path:
    """A project with nothing but the source."""
    place = folder / "src" / "traindx" / "stats"
    place.mkdir(parents=True)
    (place / "sums.c").write_bytes(SOURCE.read_bytes())
    return folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """The functions as they are where one serves all processors, if there is a compiler."""
    build = hook()
    del build.ATTEMPTS[0]
    library = build.compiled(copied(tmp_path_factory.mktemp("plain")))
    assert (library is not None) == COMPILED
    return {} if library is None else native.load(library)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("_source", compiled)
def test_every_number_of_a_half_type_is_read_as_torch_reads_it(dtype, _source, plain):
    codes = torch.arange(1 << 16, dtype=torch.int32).to(torch.uint16).view(dtype)
    expected = codes.double()
    finite = expected.isfinite()
    for functions in (native.FUNCTIONS, plain):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(native, "FUNCTIONS", functions)
            found = [found_in(code) for code in codes.split(1)]
        lows = torch.tensor([row.min for row in found], dtype=torch.float64)
        assert torch.equal(lows[finite], expected[finite])
        assert torch.equal(lows.isnan(), expected.isnan())
        assert [row.nonzero for row in found] == (expected != 0).double().tolist()
        assert [row.nonfinite == 0 for row in found] == finite.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("_source", compiled)
@given(
    size=st.one_of(st.integers(1, 200), st.integers(8000, 20_000)),
    ratio=st.sampled_from([0.0, 1.0, 1e3, -1e4]),
    seed=st.integers(0, 10_000),
)
def test_functions_for_any_processor_find_the_same(dtype, _source, plain, size, ratio, seed):
    generator = torch.Generator().manual_seed(seed)
    wide = torch.randn(size, generator=generator, dtype=torch.float64) + ratio
    tensor = torch.where(wide.abs() < 0.3, 0.0, wide).to(dtype)
    values = tensor.double().numpy().astype(np.longdouble)
    bound = 1e-12 if dtype is torch.float64 else 3e-6
    for functions in (native.FUNCTIONS, plain):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(native, "FUNCTIONS", functions)
            row = found_in(tensor)
        total, m2 = values.sum(), float(np.sum((values - values.mean()) ** 2))
        rounding = 4 * np.finfo(np.float64).eps * float(abs(total))
        assert abs(float(row.total - total)) <= bound * math.sqrt(m2 * size) + rounding
        assert row.m2 == pytest.approx(m2, rel=bound, abs=0)
        assert (row.min, row.max) == (float(values.min()), float(values.max()))
        assert row.nonzero == np.count_nonzero(values)


@pytest.mark.parametrize("_source", compiled)
def test_whole_numbers_about_zero_are_summed_exactly(_source):
    tensor = (torch.arange(70_000) % 7 - 3).float()
    row = found_in(tensor)
    assert (row.total, row.m2) == (0.0, float(tensor.double().square().sum()))
    assert found_in(tensor[:-2]).total == -5.0


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("_source", compiled)
def test_no_element_is_passed_over(place, _source):
    for dtype in DTYPES:
        tensor = torch.zeros(SIZE, dtype=dtype)
        tensor[place] = -3.0
        row = summarize(tensor, sample_at=0)
        assert (row.min, row.max, row.total) == (-3.0, 0.0, -3.0)
        assert (row.sampled, row.nonzero) == (SIZE, 1)
        assert row.m2 == pytest.approx(9 - 9 / SIZE)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("_source", compiled)
def test_one_number_that_is_not_finite_is_seen_wherever_it_is(place, value, _source):
    for dtype, least in itertools.product(DTYPES, (-1, 1)):
        tensor = torch.linspace(least, 1, SIZE).to(dtype)  # the others may be all alike
        tensor[place] = value
        row = summarize(tensor, sample_at=0)
        assert (row.nonfinite, row.nonzero) == (1, np.count_nonzero(tensor.double().numpy()))
        assert math.isnan(row.numbers()[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("_source", compiled)
@given(
    size=st.one_of(st.integers(1, 200), st.sampled_from([8191, 8192, 8193, 16_415, 24_577])),
    skipped=st.integers(0, 3),
    seed=st.integers(0, 10_000),
)
def test_numbers_of_every_kind_are_right(dtype, kind, _source, size, skipped, seed):
    generator = torch.Generator().manual_seed(seed)
    some = KINDS[kind](torch.randn(size + skipped, generator=generator, dtype=torch.float64))
    most = torch.finfo(dtype).max
    tensor = some.clamp(-most, most).to(dtype)[skipped:]
    values = tensor.double().numpy().astype(np.longdouble)
    row = summarize(tensor, sample_at=0)
    assert (row.min, row.max) == (float(values.min()), float(values.max()))
    assert (row.sampled, row.nonzero) == (size, np.count_nonzero(values))
    bound = 1e-12 if dtype is torch.float64 else 1e-4
    m2 = float(np.sum((values - values.mean()) ** 2))
    if values.mean() ** 2 <= 1.1e8 * m2 / size or m2 == 0:
        assert row.m2 == pytest.approx(m2, rel=bound, abs=0)
    assert row == summarize(tensor.clone(), sample_at=0)  # wherever it lies in memory
    without = row._replace(sampled=0, nonzero=0)
    assert summarize(tensor) == without


@pytest.mark.parametrize("_source", compiled)
def test_where_the_elements_lie_between_addresses_of_their_width_they_are_read_too(_source):
    values = np.arange(1, 10_002, dtype=np.float32)
    memory = np.zeros(values.nbytes + 1, np.uint8)
    memory[1:] = values.view(np.uint8)
    tensor = torch.from_numpy(np.frombuffer(memory.data, np.float32, offset=1))
    assert tensor.data_ptr() % 4 == 1
    assert summarize(tensor) == summarize(torch.from_numpy(values))


def test_denormal_numbers_stay_what_they_were_for_the_training():
    """A library linked with -ffast-math would flush them to zero in the whole process."""
    code = (
        "import torch; from traindx.stats import native; "
        "print(bool((torch.full((8,), 1e-40) * 1.0 != 0).all()))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "True\n"


def test_without_a_compiler_nothing_is_compiled_and_what_was_is_gone(tmp_path, monkeypatch):
    root = copied(tmp_path)
    stale = root / "src" / "traindx" / "stats" / "_sums.so"
    stale.write_bytes(b"of another source")
    monkeypatch.setenv("CC", "false")
    assert hook().compiled(root) is None
    assert not stale.exists()
    monkeypatch.setenv("CC", "/no/such/compiler")
    assert hook().compiled(root) is None


@pytest.mark.parametrize("content", [None, b"", b"not a library", b"\x7fELF" + bytes(60)])
def test_a_library_that_is_none_is_passed_over(tmp_path, content):
    path = tmp_path / "_sums.so"
    if content is not None:
        path.write_bytes(content)
    assert native.load(path) == {}


@pytest.mark.parametrize("source", compiled)
@pytest.mark.parametrize(
    ("old", "new"),
    [("return 3;", "return 1;"), ("sums_version", "version"), ("traindx_##NAME", "other_##NAME")],
)
def test_a_library_of_another_source_is_passed_over(tmp_path, source, old, new):
    root = copied(tmp_path)
    code = root / "src" / "traindx" / "stats" / source.name
    text = code.read_text(encoding="utf-8")
    assert old in text
    code.write_text(text.replace(old, new), encoding="utf-8")
    library = hook().compiled(root)
    assert library is not None
    assert native.load(library) == {}


def test_what_cannot_be_read_in_one_pass_is_left_to_numpy():
    strided, counts = torch.ones(4, 6)[:, ::2], torch.ones(4, dtype=torch.int32)
    negative = (torch.ones(3) * 1j).conj().imag
    assert negative.is_neg()
    for tensor in (strided, counts, negative):
        assert native.row(tensor, tensor.numel(), zeros=True) is None
    assert math.isclose(float(summarize(negative).total), -3.0)


def test_the_source_has_the_bounds_that_numpy_is_held_to():
    text = SOURCE.read_text(encoding="utf-8")
    assert f"#define LEAST_SHARE (1.0 / {round(1 / host._LEAST_SHARE)})" in text
    assert f"#define VANISHING {host._VANISHING}" in text
