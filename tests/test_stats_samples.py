"""Samples read together in C, where something could be compiled."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.statistics_ways import COMPILED
from traindx.stats.samples import Samples, doubles

compiled = pytest.mark.skipif(not COMPILED, reason="there is no compiler")


@pytest.mark.parametrize("size", [1, 15, 16, 17, 32, 1003])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@compiled
def test_of_samples_what_they_were_and_how_far_they_moved_is_found(size, dtype):
    generator = np.random.default_rng(0)
    values = (generator.standard_normal(size) * 100).astype(dtype)
    spread = (generator.standard_normal((41, 50)) * 100).astype(dtype)
    each = [values, spread[:, 8:24], np.zeros(3, dtype)]
    samples, kept = Samples.of(each), doubles(size + 41 * 16 + 3)()
    assert samples is not None
    samples.moved(kept)
    before = np.split(np.array(kept), [size, size + 41 * 16])
    assert [some.tolist() for some in before] == [some.ravel().tolist() for some in each]
    values += 3
    spread *= 2
    found = samples.moved(kept)
    now = np.split(np.array(kept), [size, size + 41 * 16])
    for i in (0, 1):
        rms, ratio = found[2 * i : 2 * i + 2]
        assert rms == pytest.approx(np.sqrt(np.mean(before[i] ** 2)), rel=1e-14)
        change = np.linalg.norm(now[i] - before[i]) / np.linalg.norm(before[i])
        assert ratio == pytest.approx(change, rel=1e-14)
    assert found[4] == 0
    assert math.isnan(found[5])


@pytest.mark.parametrize("size", [0, 3, 5])
@compiled
def test_what_does_not_fit_into_the_room_is_refused(size):
    samples = Samples.of([np.ones(4)])
    assert samples is not None
    with pytest.raises(ValueError, match=f"4 numbers do not fit into room for {size}"):
        samples.moved(doubles(size)())


@pytest.mark.parametrize(
    "sample",
    [
        np.ones((6, 32))[::2, ::2],
        np.ones(9)[::3],
        np.ones(4, np.float16),
        np.ones(4, ">f4"),
        np.ones(0),
    ],
    ids=["strided rows", "strided", "half", "other byte order", "empty"],
)
def test_samples_of_other_kinds_are_left_to_numpy(sample):
    assert Samples.of([np.ones(4), sample]) is None
