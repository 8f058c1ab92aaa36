"""Samples of tensors on the CPU, taken anew at each look without holding what they look at."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import torch

from tests.statistics_ways import way  # noqa: F401
from traindx.capture.arrays import Views, array, sample_on_host
from traindx.stats import native
from traindx.stats.samples import doubles

TENSORS = {
    "small": torch.randn(7, 5),
    "large": torch.randn(300, 200),
    "double": torch.randn(300, 200, dtype=torch.float64),
    "half": torch.randn(40, 30).half(),
    "transposed": torch.randn(40, 30).t(),
    "negated": torch.randn(40, dtype=torch.complex64).conj().imag,
    "a part of another": torch.randn(90, 30)[30:60],
    "a scalar": torch.tensor(3.0),
}


@pytest.mark.parametrize("tensor", TENSORS.values(), ids=TENSORS)
def test_a_remembered_sample_is_the_one_taken_afresh(tensor):
    samples = Views()
    for _ in range(3):
        assert np.array_equal(samples.of("it", [tensor]).each[0], sample_on_host(tensor))
        tensor.add_(1)


def test_a_sample_is_a_view_made_once_as_long_as_the_tensor_lies_where_it_lay():
    samples, tensor = Views(), torch.zeros(300, 200)
    (first,) = samples.of("it", [tensor]).each
    tensor.fill_(5)
    assert samples.of("it", [tensor]).each[0] is first
    assert (first == 5).all()


@pytest.mark.parametrize(
    "other",
    [
        lambda tensor: tensor.clone(),
        lambda tensor: tensor.view(60, 20),
        lambda tensor: tensor[:10],
        lambda tensor: tensor.t(),
        lambda tensor: tensor.view(torch.float64),
    ],
    ids=["memory", "shape", "size", "order", "type"],
)
def test_other_data_of_a_tensor_are_noticed(other):
    samples, tensor = Views(), torch.nn.Parameter(torch.rand(40, 30))
    samples.of("it", [tensor])
    with torch.no_grad():
        data = other(tensor.detach()).clone(memory_format=torch.preserve_format)
        for now in (data, other(tensor.detach())):
            assert np.array_equal(samples.of("it", [now]).each[0], sample_on_host(now))


def test_of_several_tensors_one_that_has_moved_is_noticed():
    views, tensors = Views(array), [torch.rand(5), torch.tensor(7), torch.rand(4).half()]
    for moved in (None, 0, 1, 2):
        if moved is not None:
            tensors[moved] = tensors[moved] + 1
        for part in (tensors, tensors[:2]):  # with and without one that is copied
            found = [view.tolist() for view in views.of(len(part), part).each]
            assert found == [tensor.tolist() for tensor in part]


@pytest.mark.parametrize("names", [[*TENSORS], ["double", "small", "large", "a scalar"]])
def test_samples_are_copied_one_after_another(names):
    samples, tensors = Views(), [TENSORS[name] for name in names]
    size = sum(sample_on_host(tensor).size for tensor in tensors)
    room = doubles(size)()
    for _ in range(2):
        arrays = samples.of("it", tensors)
        assert (arrays.samples is not None) == (
            bool(native.FUNCTIONS) and len(names) < len(TENSORS)
        )
        arrays.copy_to(room)
        assert [*room] == np.concatenate(arrays.each, axis=None).tolist()
        for tensor in tensors:
            tensor.add_(1)


def test_no_memory_is_kept_alive_by_a_sample():
    samples, memory = Views(), np.zeros((30, 20), np.float32)
    alive = weakref.ref(memory)
    samples.of("it", [torch.from_numpy(memory)])
    del memory
    gc.collect()
    assert alive() is None


def test_only_so_many_names_are_remembered_and_the_last_of_them_is():
    samples, first = Views(), torch.rand(5)
    before = samples.of("first", [first])
    for i in range(300):
        samples.of(i, [torch.rand(5)])
    assert samples.of("first", [first]) is not before
    assert samples.of("first", [first]) is samples.of("first", [first])
