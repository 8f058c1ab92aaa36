"""Flax's layers, by `flax.linen`; those of `flax.nnx` compute the same."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import Any

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
_WORDS = {"eps": "epsilon", "num_groups": "num_groups"}


class Flax:
    """`flax.linen` on the CPU."""

    name = "flax"
    slow = False
    layers: Mapping[str, str] = LAYERS

    def __init__(self) -> None:
        self._jax: Any = import_module("jax")
        self._linen: Any = import_module("flax.linen")
        self._questions: dict[str, Any] = {}
        self.version = f"flax {import_module('flax').__version__}, jax {self._jax.__version__}"

    def run(self, call: Call) -> Answer:
        """See `Target`."""
        with self._jax.enable_x64(call.dtype == "float64"):
            return self._run(call)

    def _run(self, call: Call) -> Answer:
        jnp = self._jax.numpy
        wide = "float32" if call.dtype == "bfloat16" else call.dtype
        x = jnp.asarray(laid_out(call.x.astype(wide), call.memory)).astype(call.dtype)
        given = {"scale": call.weight, "bias": call.bias}
        params = {k: jnp.asarray(v, call.dtype) for k, v in given.items() if v is not None}
        stats = call.running and dict(
            zip(("mean", "var"), map(self._short, call.running), strict=True)
        )
        mask = None if call.mask is None else jnp.asarray(call.mask != 0)
        dy = None if call.dy is None else jnp.asarray(call.dy, call.dtype)
        y, kept, affine, dx, slopes = self._jitted(call)(x, params, stats, mask, dy)
        by = {name: numbers(value) for name, value in slopes.items()}
        return Answer(
            numbers(y),
            dtype_name(y),
            None if dx is None else numbers(dx),
            by.get("scale"),
            by.get("bias"),
            running=(numbers(kept["mean"]), numbers(kept["var"])) if kept else None,
            affine=("scale" in affine, "bias" in affine),
        )

    def _short(self, values: Any) -> Any:
        """Running statistics as the layer itself would have begun with them."""
        return self._jax.numpy.asarray(values, self._jax.numpy.float32)

    def _jitted(self, call: Call) -> Any:
        """One question to such a layer, jitted, as training would have it."""
        options = _options(call)
        key = f"{call.layer} {options}"
        if key not in self._questions:
            layer = getattr(self._linen, call.layer)(**options)
            self._questions[key] = self._jax.jit(partial(self._question, layer))
        return self._questions[key]

    def _question(self, layer: Any, x: Any, given: Any, stats: Any, mask: Any, dy: Any) -> Any:
        jax = self._jax
        begun = layer.init(jax.random.key(0), x)
        params = {**begun.get("params", {}), **given}
        state = stats or begun.get("batch_stats", {})
        masked = {} if mask is None else {"mask": mask}

        def applied(params: Any, x: Any) -> Any:
            held = {"params": params, "batch_stats": state}
            y, after = layer.apply(held, x, mutable=["batch_stats"], **masked)
            return y, after.get("batch_stats", {})

        if dy is None:
            y, kept = applied(params, x)
            return y, kept, params, None, {}
        y, pull, kept = jax.vjp(applied, params, x, has_aux=True)
        slopes, dx = pull(dy.astype(y.dtype))
        return y, kept, params, dx, slopes

    def code(self, call: Call, aspect: str) -> str:
        """See `Target`."""
        wide = "jax.config.update('jax_enable_x64', True)\n" if call.dtype == "float64" else ""
        options = keywords(_options(call)).removeprefix(", ")
        mask = "" if call.mask is None else ", mask=jnp.asarray(mask != 0)"
        apply = f"layer.apply(state, x, mutable=['batch_stats']{mask})"
        return spoken(
            call,
            aspect,
            imports=f"import jax\nimport jax.numpy as jnp\nfrom flax import linen\n\n{wide}",
            x=f"jnp.asarray(x).astype(jnp.{call.dtype})",
            build=f"layer = linen.{call.layer}({options})\n"
            "state = dict(layer.init(jax.random.key(0), x))",
            state={
                "weight": "state['params']['scale'] = jnp.asarray(weight, x.dtype)",
                "bias": "state['params']['bias'] = jnp.asarray(bias, x.dtype)",
                "running": "state['batch_stats']['mean'] = jnp.asarray(running_mean, jnp.float32)\n"
                "state['batch_stats']['var'] = jnp.asarray(running_var, jnp.float32)",
            },
            forward=f"y, after = jax.jit(lambda state, x: {apply})(state, x)",
            backward="dy = jnp.asarray(dy, jnp.result_type(x.dtype, jnp.float32))\n"
            f"pulled = lambda state, x, dy: jax.vjp(lambda x: {apply}[0], x)[1](dy)\n"
            "(dx,) = jax.jit(pulled)(state, x, dy)",
            found={
                "forward": "np.asarray(y, np.float64)",
                "grad_x": "np.asarray(dx, np.float64)",
                "running_mean": "np.asarray(after['batch_stats']['mean'], np.float64)",
                "running_var": "np.asarray(after['batch_stats']['var'], np.float64)",
            },
        )


def _options(call: Call) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for name, value in call.options.items():
        match name, call.layer:
            case "momentum", "BatchNorm":
                options["momentum"] = 1 - value
            case "axis", "BatchNorm":
                options["axis"] = value
            case "axis", "LayerNorm" | "RMSNorm":
                options["reduction_axes"] = options["feature_axes"] = value
            case "axis", "InstanceNorm":
                options["feature_axes"] = value
            case (("eps" | "num_groups"), _):
                options[_WORDS[name]] = value
            case _:
                raise UnsupportedError(f"flax's {call.layer} has no option for {name}")
    if call.layer == "BatchNorm":
        options["use_running_average"] = not call.training
    return options


TARGETS = (Entry("flax", Flax, "pip install flax"),)
