"""ONNX's operators, answered by its own reference evaluator and by onnxruntime.

There are no gradients, and an operator's version is part of its name where it is not the newest.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from traindx.norm.conformance.precision import Numbers, dtype_name, laid_out, numbers
from traindx.norm.conformance.script import keywords
from traindx.norm.conformance.target import Answer, Call, Entry, UnsupportedError

LAYERS = {
    "BatchNormalization": "batch_norm",
    "BatchNormalization-9": "batch_norm",
    "LayerNormalization": "layer_norm",
    "GroupNormalization": "group_norm",
    "GroupNormalization-18": "group_norm",
    "InstanceNormalization": "instance_norm",
    "RMSNormalization": "rms_norm",
    "LRN": "local_response_norm",
    "MeanVarianceNormalization": "mean_variance",
    "LpNormalization": "unit_norm",
}
_NEWEST = 23
_WORDS = {"eps": "epsilon", "k": "bias"}
_AXES = ("LayerNormalization", "RMSNormalization", "LpNormalization")


class Onnx:
    """ONNX operators, each as a model of one node.

    Args:
        runtime: Whether onnxruntime answers, or the reference evaluator.
    """

    slow = False
    layers: Mapping[str, str] = LAYERS

    def __init__(self, *, runtime: bool = False) -> None:
        self._onnx: Any = import_module("onnx")
        self._helper: Any = import_module("onnx.helper")
        self._runtime: Any = import_module("onnxruntime") if runtime else None
        self._reference: Any = import_module("onnx.reference")
        self.name = "onnxruntime" if runtime else "onnx-reference"
        who = f"onnxruntime {self._runtime.__version__}" if runtime else "reference evaluator"
        self.version = f"onnx {self._onnx.__version__}, {who}"

    def run(self, call: Call) -> Answer:
        """See `Target`."""
        if call.mask is not None:
            raise UnsupportedError("ONNX's operators take no mask")
        if call.dtype == "bfloat16" and self._runtime is not None:
            raise UnsupportedError("onnxruntime takes no NumPy array of bfloat16")
        inputs = self._inputs(call)
        outputs = _outputs(call)
        model = self._model(call, inputs, outputs)
        if self._runtime is None:
            got = self._reference.ReferenceEvaluator(model).run(None, inputs)
        else:
            session = self._session(model)
            got = session.run(None, inputs)
        running = (numbers(got[1]), numbers(got[2])) if len(got) == 3 else None
        return Answer(numbers(got[0]), dtype_name(got[0]), running=running)

    def code(self, call: Call, aspect: str) -> str:
        """See `Target`."""
        (name, version), sources = _operator(call), _sources(call)
        inputs = ", ".join(f"{key!r}: {sources[key]}" for key in self._inputs(call))
        attributes = keywords(_attributes(call))
        run = (
            "session = onnxruntime.InferenceSession(model.SerializeToString())\n"
            "outputs = session.run(None, inputs)"
            if self._runtime is not None
            else "outputs = ReferenceEvaluator(model).run(None, inputs)"
        )
        imports = (
            "import onnxruntime"
            if self._runtime is not None
            else "from onnx.reference import ReferenceEvaluator"
        )
        place = {"forward": 0, "running_mean": 1, "running_var": 2}[aspect]
        return f"""{imports}
from onnx import helper

names = {_outputs(call)}
inputs = {{{inputs}}}
kind = helper.np_dtype_to_tensor_dtype(inputs['x'].dtype)
node = helper.make_node('{name}', list(inputs), names{attributes})
graph = helper.make_graph(
    [node],
    'one',
    [helper.make_tensor_value_info(n, kind, v.shape) for n, v in inputs.items()],
    [helper.make_tensor_value_info(n, kind, None) for n in names],
)
opset = helper.make_opsetid('', {version})
model = helper.make_model(graph, opset_imports=[opset], ir_version=10)
{run}
got = np.asarray(outputs[{place}], np.float64)"""

    def _model(self, call: Call, inputs: Mapping[str, Any], outputs: list[str]) -> Any:
        helper, (name, version) = self._helper, _operator(call)
        kind = helper.np_dtype_to_tensor_dtype(inputs["x"].dtype)
        node = helper.make_node(name, list(inputs), outputs, **_attributes(call))
        infos = [helper.make_tensor_value_info(n, kind, v.shape) for n, v in inputs.items()]
        results = [helper.make_tensor_value_info(n, kind, None) for n in outputs]
        graph = helper.make_graph([node], "one", infos, results)
        opsets = [helper.make_opsetid("", version)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def _session(self, model: Any) -> Any:
        options = self._runtime.SessionOptions()
        options.log_severity_level = 4
        return self._runtime.InferenceSession(model.SerializeToString(), options)

    def _inputs(self, call: Call) -> dict[str, Any]:
        dtype: Any = call.dtype
        if dtype == "bfloat16":
            dtype = import_module("ml_dtypes").bfloat16
        inputs = {"x": laid_out(call.x.astype(dtype), call.memory)}
        many = _many(call)
        if many:
            ones, zeros = np.ones(many), np.zeros(many)
            inputs["scale"] = ones if call.weight is None else call.weight
            if call.layer != "RMSNormalization":
                inputs["shift"] = zeros if call.bias is None else call.bias
        if call.layer.startswith("BatchNormalization"):
            mean, var = call.running or (np.zeros(many), np.ones(many))
            inputs["mean"], inputs["var"] = mean, var
        return {
            name: np.asarray(value).astype(dtype) if name != "x" else value
            for name, value in inputs.items()
        }


def _sources(call: Call) -> dict[str, str]:
    """Each input as source; what the question does not give is 0, or 1."""
    many, dtype = _many(call), repr(call.dtype)

    def given(name: str, values: Numbers | None, usual: str) -> str:
        return f"{name}.astype({dtype})" if values is not None else f"np.{usual}({many}, {dtype})"

    mean, var = call.running or (None, None)
    return {
        "x": f"x.astype({dtype})",
        "scale": given("weight", call.weight, "ones"),
        "shift": given("bias", call.bias, "zeros"),
        "mean": given("running_mean", mean, "zeros"),
        "var": given("running_var", var, "ones"),
    }


def _many(call: Call) -> int:
    """How many values scale and shift have; 0 for an operator without them."""
    match _operator(call)[0]:
        case "LayerNormalization" | "RMSNormalization":
            axis = call.options.get("axis", -1)
            if axis % call.x.ndim != call.x.ndim - 1:
                raise UnsupportedError("ONNX normalizes all axes from `axis` on")
            return call.x.shape[axis]
        case "GroupNormalization" if call.layer.endswith("-18"):
            return call.options["num_groups"]
        case "BatchNormalization" | "GroupNormalization" | "InstanceNormalization":
            return call.x.shape[1]
        case _:
            return 0


def _outputs(call: Call) -> list[str]:
    trained = call.layer == "BatchNormalization" and call.training
    return ["y", "mean_after", "var_after"] if trained else ["y"]


def _operator(call: Call) -> tuple[str, int]:
    name, _, version = call.layer.partition("-")
    return name, int(version or _NEWEST)


def _attributes(call: Call) -> dict[str, Any]:
    name, _ = _operator(call)
    attributes: dict[str, Any] = {}
    for option, value in call.options.items():
        if option == "momentum" and name == "BatchNormalization":
            attributes["momentum"] = 1 - value
        elif option == "axis" and name not in _AXES:
            raise UnsupportedError(f"ONNX's {name} has its axis fixed")
        elif option == "eps" and name in ("LpNormalization", "MeanVarianceNormalization"):
            raise UnsupportedError(f"ONNX's {name} has no epsilon")
        else:
            attributes[_WORDS.get(option, option)] = value
    if name == "GroupNormalization" and "num_groups" not in attributes:
        raise UnsupportedError("num_groups must be given")
    if call.layer == "BatchNormalization" and call.training:
        attributes["training_mode"] = 1
    if call.layer == "BatchNormalization-9" and call.training:
        raise UnsupportedError("the training of BatchNormalization-9 is not asked for")
    return attributes


def _reference() -> Onnx:
    return Onnx()


def _ort() -> Onnx:
    return Onnx(runtime=True)


TARGETS = (
    Entry("onnx-reference", _reference, "pip install onnx"),
    Entry("onnxruntime", _ort, "pip install onnxruntime onnx"),
)
