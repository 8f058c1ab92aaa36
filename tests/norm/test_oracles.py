"""Answers to torch's own samples, and the reader of ONNX's: `make oracles` asks those."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.norm.oracles.answers import Answer, compared, table
from tests.norm.oracles.onnx_vectors import model


@pytest.mark.slow
def test_every_normalization_sample_of_torch_is_answered_as_torch_does() -> None:
    from tests.norm.oracles import torch_samples

    found = list(torch_samples.answers())
    assert [answer for answer in found if not answer.excess <= 1] == []
    counted = {line.partition(" vectors")[0] for line in table(found)}
    assert "torch ModuleInfo, forward: 132" in counted
    assert "torch OpInfo nn.functional.group_norm, forward: 21" in counted
    assert "torch OpInfo, NumPy references: 74" in counted


def test_a_model_of_onnx_is_read_with_its_attributes() -> None:
    made = helper.make_node("LRN", ["x"], ["y"], alpha=0.5, size=3, axes=[-1, 300], mode="a")
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph([made], "g", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("other", 2), helper.make_opsetid("", 17)]
    read = model(helper.make_model(graph, opset_imports=opsets).SerializeToString())
    assert (read.opset, read.inputs, read.outputs) == (17, ("x",), ("y",))
    assert read.nodes[0].attributes == {"alpha": 0.5, "size": 3, "axes": [-1, 300], "mode": "a"}


def test_a_wrong_shape_or_a_missing_nan_fails_a_vector() -> None:
    nan = float("nan")
    for ours, theirs in ([[1.0]], [1.0]), ([1.0], [nan]), ([nan], [1.0]):
        assert compared("s", "n", [(ours, theirs)], rtol=1, atol=1).excess == np.inf
    assert compared("s", "n", [([nan, 1], [nan, 1])], rtol=0, atol=1) == Answer("s", "n", 0, 0)
    assert table([Answer("s", "n", 0.5, 2)]) == ["s: 1 vectors, 1 failed, worst error 0.5 (n)"]
