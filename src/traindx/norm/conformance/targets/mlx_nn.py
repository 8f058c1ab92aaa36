"""MLX's layers, by `mlx.nn`, on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from traindx.norm.conformance.precision import dtype_name, laid_out, numbers
from traindx.norm.conformance.script import keywords, spoken
from traindx.norm.conformance.target import Answer, Call, Entry, UnsupportedError

LAYERS = {
    "BatchNorm": "batch_norm",
    "LayerNorm": "layer_norm",
    "GroupNorm": "group_norm",
    "InstanceNorm": "instance_norm",
    "RMSNorm": "rms_norm",
}


class Mlx:
    """`mlx.nn` on the CPU; channels are the last axis."""

    name = "mlx"
    slow = False
    layers: Mapping[str, str] = LAYERS

    def __init__(self) -> None:
        self._mx: Any = import_module("mlx.core")
        self._nn: Any = import_module("mlx.nn")
        self._mx.set_default_device(self._mx.cpu)
        self.version = f"mlx {self._mx.__version__}"

    def run(self, call: Call) -> Answer:
        """See `Target`."""
        if call.mask is not None:
            raise UnsupportedError("MLX's layers take no mask")
        if call.dtype == "float64":
            raise UnsupportedError("float64 is not asked for")
        dtype = getattr(self._mx, call.dtype)
        x = self._mx.array(laid_out(call.x.astype(np.float32), call.memory)).astype(dtype)
        arguments, options = _written(call)
        layer = getattr(self._nn, call.layer)(*arguments, **options)
        layer.set_dtype(dtype)
        layer.train(call.training)
        for name, value in (("weight", call.weight), ("bias", call.bias)):
            if value is not None:
                if name not in layer:
                    raise UnsupportedError(f"MLX's {call.layer} has no {name}")
                layer[name] = self._mx.array(value.astype(np.float32)).astype(dtype)
        if call.running is not None:
            for name, value in zip(("running_mean", "running_var"), call.running, strict=True):
                layer[name] = self._mx.array(value.astype(np.float32)).astype(dtype)
        dx = None
        if call.dy is None:
            y = layer(x)
        else:
            dy = self._mx.array(call.dy.astype(np.float32)).astype(dtype)
            (y,), (dx,) = self._mx.vjp(layer, [x], [dy])
        running = None
        if "running_mean" in layer:
            running = (self._out(layer["running_mean"]), self._out(layer["running_var"]))
        return Answer(
            self._out(y),
            dtype_name(y),
            None if dx is None else self._out(dx),
            running=running,
            affine=("weight" in layer, "bias" in layer),
        )

    def code(self, call: Call, aspect: str) -> str:
        """See `Target`."""
        arguments, options = _written(call)
        made = ", ".join(map(repr, arguments)) + keywords(options)
        read = "np.array({}.astype(mx.float32), np.float64)"
        return spoken(
            call,
            aspect,
            imports="import mlx.core as mx\nimport mlx.nn as nn\n\nmx.set_default_device(mx.cpu)",
            x=f"mx.array(x.astype(np.float32)).astype(mx.{call.dtype})",
            build=f"layer = nn.{call.layer}({made})\nlayer.set_dtype(mx.{call.dtype})\n"
            f"layer.train({call.training})",
            state={
                "weight": "layer.weight = mx.array(weight.astype(np.float32)).astype(x.dtype)",
                "bias": "layer.bias = mx.array(bias.astype(np.float32)).astype(x.dtype)",
                "running": "layer.running_mean = mx.array(running_mean.astype(np.float32))\n"
                "layer.running_var = mx.array(running_var.astype(np.float32))",
            },
            forward="y = layer(x)",
            backward="dy = mx.array(dy.astype(np.float32)).astype(x.dtype)\n"
            "(y,), (dx,) = mx.vjp(layer, [x], [dy])",
            found={
                "forward": read.format("y"),
                "grad_x": read.format("dx"),
                "running_mean": read.format("layer.running_mean"),
                "running_var": read.format("layer.running_var"),
            },
        )

    def _out(self, values: Any) -> Any:
        # Through float32, since NumPy has no bfloat16.
        return numbers(np.array(values.astype(self._mx.float32)))


def _written(call: Call) -> tuple[list[Any], dict[str, Any]]:
    """The positional and the keyword arguments."""
    options, channels = dict(call.options), call.x.shape[-1]
    if "axis" in options:
        raise UnsupportedError(f"MLX's {call.layer} has its axis fixed")
    if call.layer != "GroupNorm":
        if call.layer == "InstanceNorm" and call.weight is not None:
            options["affine"] = True
        return [channels], options
    if "num_groups" not in options:
        raise UnsupportedError("num_groups must be given")
    return [options.pop("num_groups"), channels], options


TARGETS = (Entry("mlx", Mlx, "pip install 'mlx[cpu]'"),)
