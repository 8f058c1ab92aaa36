"""Keras 3's layers on each of its backends; a process has one of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import Any

from traindx.norm.conformance.precision import dtype_name, laid_out, numbers
from traindx.norm.conformance.script import keywords, spoken
from traindx.norm.conformance.target import (
    Answer,
    Call,
    Entry,
    NotInstalledError,
    UnsupportedError,
)

LAYERS = {
    "BatchNormalization": "batch_norm",
    "LayerNormalization": "layer_norm",
    "GroupNormalization": "group_norm",
    "RMSNormalization": "rms_norm",
    "UnitNormalization": "unit_norm",
}
_WORDS = {"eps": "epsilon", "num_groups": "groups", "axis": "axis"}


class Keras:
    """`keras.layers` on one backend, on the CPU."""

    slow = False
    layers: Mapping[str, str] = LAYERS

    def __init__(self, backend: str) -> None:
        import_module(backend)
        os.environ.setdefault("KERAS_BACKEND", backend)
        self._keras: Any = import_module("keras")
        self.name = f"keras-{backend}"
        if self._keras.backend.backend() != backend:
            raise NotInstalledError(
                f"this process has keras on {self._keras.backend.backend()}; set KERAS_BACKEND"
            )
        self._backend: Any = import_module(backend)
        self._on = backend
        self._questions: dict[str, Any] = {}
        self.version = f"keras {self._keras.__version__}, {backend} {self._backend.__version__}"

    def run(self, call: Call) -> Answer:
        """See `Target`."""
        if self._on == "jax":
            with self._backend.enable_x64(call.dtype == "float64"):
                return self._run(call)
        return self._run(call)

    def _run(self, call: Call) -> Answer:
        if call.mask is not None and call.layer != "BatchNormalization":
            raise UnsupportedError(f"keras' {call.layer} takes no mask")
        keras = self._keras
        layer = getattr(keras.layers, call.layer)(**_options(call), dtype=call.dtype)
        layer.build(call.x.shape)
        for names, value in ((("gamma", "scale"), call.weight), (("beta",), call.bias)):
            if value is not None:
                _variable(layer, *names).assign(keras.ops.cast(value, call.dtype))
        if call.running is not None:
            layer.moving_mean.assign(keras.ops.cast(call.running[0], "float32"))
            layer.moving_variance.assign(keras.ops.cast(call.running[1], "float32"))
        x = self._array(call, laid_out(call.x, call.memory))
        mask = (
            {}
            if call.mask is None
            else {"mask": keras.ops.convert_to_tensor(call.mask[..., 0] != 0)}
        )
        training = {"training": call.training} if call.layer == "BatchNormalization" else {}
        dx = dweight = dbias = None
        if self._on == "jax":
            y, dx, dweight, dbias = self._jitted(call, layer, x, {**training, **mask})
        elif call.dy is None:
            y = layer(x, **training, **mask)
        else:
            y, dx, dweight, dbias = self._pulled(call, layer, x, training)
        mean = getattr(layer, "moving_mean", None)
        running = None
        if mean is not None:
            running = (self._out(mean), self._out(layer.moving_variance))
        weight, bias = _variable(layer, "gamma", "scale"), _variable(layer, "beta")
        return Answer(
            self._out(y),
            dtype_name(y).replace("<dtype: '", "").replace("'>", ""),
            dx,
            dweight,
            dbias,
            running=running,
            affine=(weight is not None, bias is not None),
        )

    def _pulled(self, call: Call, layer: Any, x: Any, training: dict[str, Any]) -> Any:
        weights = [
            v
            for v in (_variable(layer, "gamma", "scale"), _variable(layer, "beta"))
            if v is not None
        ]
        if self._on == "torch":
            x.requires_grad_(True)
            y = layer(x, **training)
            y.backward(self._array(call, call.dy).to(y.dtype))
            slopes = [weight.value.grad for weight in weights]
            dx = x.grad
        else:
            with self._backend.GradientTape() as tape:
                tape.watch(x)
                y = layer(x, **training)
            sources = [x, *(weight.value for weight in weights)]
            dx, *slopes = tape.gradient(y, sources, self._keras.ops.cast(call.dy, y.dtype))
        by = [None if slope is None else self._out(slope) for slope in slopes]
        return y, self._out(dx), *[*by, None, None][:2]

    def _jitted(self, call: Call, layer: Any, x: Any, options: dict[str, Any]) -> Any:
        """The answer of jax, by one jitted function a layer, as training would have it."""
        key = f"{call.layer} {_options(call)} {call.x.shape} {call.dtype} {options.get('training')}"
        if key not in self._questions:
            fixed = {k: v for k, v in options.items() if k == "training"}

            def question(held: Any, kept: Any, x: Any, dy: Any, mask: Any) -> Any:
                masked = {} if mask is None else {"mask": mask}

                def called(held: Any, x: Any) -> Any:
                    return layer.stateless_call(held, kept, x, **fixed, **masked)

                if dy is None:
                    y, after = called(held, x)
                    return y, after, None, []
                y, pull, after = self._backend.vjp(called, held, x, has_aux=True)
                slopes, dx = pull(dy.astype(y.dtype))
                return y, after, dx, slopes

            self._questions[key] = self._backend.jit(question)
        held = [v.value for v in layer.trainable_variables]
        kept = [v.value for v in layer.non_trainable_variables]
        dy = None if call.dy is None else self._array(call, call.dy)
        y, after, dx, slopes = self._questions[key](held, kept, x, dy, options.get("mask"))
        for variable, value in zip(layer.non_trainable_variables, after, strict=True):
            variable.assign(value)
        by = [self._out(slope) for slope in slopes]
        return y, None if dx is None else self._out(dx), *[*by, None, None][:2]

    def code(self, call: Call, aspect: str) -> str:
        """See `Target`."""
        options = keywords({**_options(call), "dtype": call.dtype}).removeprefix(", ")
        training = f", training={call.training}" if call.layer == "BatchNormalization" else ""
        mask = "" if call.mask is None else ", mask=mask[..., 0] != 0"
        wide = (
            "\nimport jax\n\njax.config.update('jax_enable_x64', True)"
            if (self._on == "jax" and call.dtype == "float64")
            else ""
        )
        forward = _FORWARD.get(self._on, "y = layer(x{options})").format(options=training + mask)
        scale = "scale" if call.layer == "RMSNormalization" else "gamma"
        read = "keras.ops.convert_to_numpy({}).astype(np.float64)"
        backend = f"os.environ['KERAS_BACKEND'] = '{self._on}'"
        return spoken(
            call,
            aspect,
            imports=f"import os\n\n{backend}{wide}\nimport keras\n",
            x=f"keras.ops.cast(x, '{call.dtype}')",
            build=f"layer = keras.layers.{call.layer}({options})\nlayer.build(x.shape)",
            state={
                "weight": f"layer.{scale}.assign(weight)",
                "bias": "layer.beta.assign(bias)",
                "running": "layer.moving_mean.assign(running_mean)\n"
                "layer.moving_variance.assign(running_var)",
            },
            forward=forward,
            backward=_BACKWARD[self._on].format(forward=forward, training=training),
            found={
                "forward": read.format("y"),
                "grad_x": read.format("dx"),
                "running_mean": read.format("layer.moving_mean"),
                "running_var": read.format("layer.moving_variance"),
            },
        )

    def _array(self, call: Call, values: Any) -> Any:
        array = self._keras.ops.convert_to_tensor(values.astype("float64"), dtype=call.dtype)
        return array.detach() if self._on == "torch" else array

    def _out(self, values: Any) -> Any:
        return numbers(
            self._keras.ops.convert_to_numpy(
                self._keras.ops.cast(values, "float64") if self._on != "jax" else values
            )
        )


_JAX = """import jax

held = [v.value for v in layer.trainable_variables]
kept = [v.value for v in layer.non_trainable_variables]


"""
_FORWARD = {
    # Jitted as the question was: what jax fuses rounds otherwise.
    "jax": f"{_JAX}def call(held, kept, x):\n"
    "    return layer.stateless_call(held, kept, x{options})\n\n\n"
    "y, after = jax.jit(call)(held, kept, x)\n"
    "for variable, value in zip(layer.non_trainable_variables, after):\n"
    "    variable.assign(value)",
}
_BACKWARD = {
    "torch": "x = x.detach().requires_grad_(True)\n{forward}\n"
    "y.backward(keras.ops.cast(dy, y.dtype))\ndx = x.grad",
    "tensorflow": "import tensorflow as tf\n\nwith tf.GradientTape() as tape:\n    tape.watch(x)\n"
    "    {forward}\ndx = tape.gradient(y, x, keras.ops.cast(dy, y.dtype))",
    "jax": f"{_JAX}def slope(held, kept, x, dy):\n"
    "    y, pull = jax.vjp(lambda x: layer.stateless_call(held, kept, x{training})[0], x)\n"
    "    return pull(dy.astype(y.dtype))[0]\n\n\n"
    "dx = jax.jit(slope)(held, kept, x, keras.ops.cast(dy, x.dtype))",
}


def _variable(layer: Any, *names: str) -> Any:
    found = (getattr(layer, name, None) for name in names)
    # Some layers have a flag of this name, as `scale=True`, where others have the variable.
    return next((value for value in found if hasattr(value, "assign")), None)


def _options(call: Call) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for name, value in call.options.items():
        if name == "momentum" and call.layer == "BatchNormalization":
            options["momentum"] = 1 - value
        elif name in _WORDS and (name != "eps" or call.layer != "UnitNormalization"):
            options[_WORDS[name]] = value
        else:
            raise UnsupportedError(f"keras' {call.layer} has no option for {name}")
    return options


TARGETS = tuple(
    Entry(
        f"keras-{backend}",
        partial(Keras, backend),
        f"pip install keras {package}",
        environment={"KERAS_BACKEND": backend},
    )
    for backend, package in (("torch", "torch"), ("jax", "jax"), ("tensorflow", "tensorflow"))
)
