"""Keras' own layer tests as an oracle: every normalization they call is answered by us as well.

A plugin of pytest, for a Python that has Keras: `make oracles`. While Keras tests its layers,
each call of one is compared with our reference in float64, its moving statistics too.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from tests.norm.oracles.answers import Answer, compared, refused, table
from traindx.errors import ArgumentError
from traindx.norm.presets import preset
from traindx.norm.reference import RunningStats, evaluate, forward, updated
from traindx.norm.spec import Axes, NormSpec

keras: Any = import_module("keras")  # not here where this file is only checked
layers = keras.layers

RTOL, ATOL = 1e-4, 1e-5  # float32 through two ways of summing, inputs of mean 5 and std 10
ANSWERS: list[Answer] = []
LEFT_OUT: dict[str, int] = {}


def array(values: Any) -> Any:
    """A backend's tensor in NumPy, widened."""
    return np.asarray(keras.ops.convert_to_numpy(values), np.float64)


def spec_of(layer: Any) -> NormSpec | None:
    """Ours for a layer of Keras; None for what no specification says."""
    axes = layer.axis if isinstance(getattr(layer, "axis", None), (list, tuple)) else None
    match layer:
        case layers.BatchNormalization() if layer.renorm:
            return preset(
                "keras.BatchNormalization.renorm",
                axis=layer.axis,
                eps=layer.epsilon,
                momentum=1 - layer.renorm_momentum,
                **layer.renorm_clipping,
            )
        case layers.BatchNormalization():
            momentum = 1 - layer.momentum
            return preset(
                "keras.BatchNormalization", axis=layer.axis, eps=layer.epsilon, momentum=momentum
            )
        case layers.LayerNormalization() if not layer.rms_scaling:
            return _over(preset("keras.LayerNormalization", eps=layer.epsilon), axes, layer)
        case layers.RMSNormalization():
            return _over(preset("keras.RMSNormalization", eps=layer.epsilon), axes, layer)
        case layers.GroupNormalization():
            return preset(
                "keras.GroupNormalization",
                num_groups=layer.groups,
                axis=layer.axis,
                eps=layer.epsilon,
            )
        case layers.UnitNormalization() if axes is None or len(axes) == 1:
            return preset("keras.UnitNormalization", axis=axes[0] if axes else layer.axis)
        case _:
            return None


def _over(spec: NormSpec, axes: Any, layer: Any) -> NormSpec:
    named = Axes(tuple(axes) if axes else (layer.axis,))
    return replace(spec, reduced=named, affine=named)


def answered(call: Any) -> Any:
    """A layer's `call`, with ours beside it."""
    signature = inspect.signature(call)

    def both(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = signature.bind(self, *args, **kwargs)
        given.apply_defaults()
        spec, name = spec_of(self), type(self).__name__
        before = _corrected_to(self) if _is_training(self, given) else _moving(self)
        y = call(self, *args, **kwargs)
        if spec is None or not _is_concrete(given):
            LEFT_OUT[name] = LEFT_OUT.get(name, 0) + 1
            return y
        try:
            answer = _answer(name, spec, self, given.arguments, before, y)
        except ArgumentError:
            answer = refused(f"Keras tests, {name}", str(y.shape), array(y))
        ANSWERS.append(answer)
        return y

    vars(both)["__signature__"] = signature  # Keras reads it
    return both


def _moving(layer: Any) -> RunningStats | None:
    """The moving statistics of a BatchNormalization, copied."""
    if not isinstance(layer, layers.BatchNormalization):
        return None
    return RunningStats(array(layer.moving_mean).copy(), array(layer.moving_variance).copy())


def _corrected_to(layer: Any) -> RunningStats | None:
    """What a layer in training moves: with renorm, the statistics that it corrects to."""
    if not getattr(layer, "renorm", False):
        return _moving(layer)
    root = array(layer.renorm_stddev)
    return RunningStats(array(layer.renorm_mean).copy(), root**2 - layer.epsilon)


def _is_training(layer: Any, given: Any) -> bool:
    return bool(given.arguments.get("training")) and layer.trainable


def _is_concrete(given: Any) -> bool:
    inputs = _inputs(given.arguments)
    return hasattr(inputs, "cpu") and inputs.device.type != "meta"


def _inputs(arguments: dict[str, Any]) -> Any:
    """The first argument after the layer itself, whatever it is called."""
    return list(arguments.values())[1]


def _answer(
    name: str,
    spec: NormSpec,
    layer: Any,
    given: dict[str, Any],
    before: RunningStats | None,
    y: Any,
) -> Answer:
    x, mask = array(_inputs(given)), given.get("mask")
    weight, bias = (_parameter(layer, key) for key in (("gamma", "scale"), ("beta",)))
    if mask is not None:
        mask = array(mask)
        mask = mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim))
    if before is None:
        pairs = [(forward(spec, x, weight, bias), array(y))]
    elif given["training"] and layer.trainable:
        after, theirs = updated(spec, before, x, mask=mask), _corrected_to(layer)
        assert theirs is not None, "it kept some before"
        pairs = [(forward(spec, x, weight, bias, running=before, mask=mask), array(y))]
        pairs += [(after.mean, theirs.mean), (after.var, theirs.var)]
    else:
        pairs = [(evaluate(spec, before, x, weight, bias), array(y))]
    return compared(f"Keras tests, {name}", str(x.shape), pairs, rtol=RTOL, atol=ATOL)


def _parameter(layer: Any, names: tuple[str, ...]) -> Any:
    for name in names:
        value = getattr(layer, name, None)
        if value is not None and not isinstance(value, bool):
            return array(value)
    return None


def pytest_configure() -> None:
    """Put ours beside the layers before Keras' tests run."""
    kinds = (layers.BatchNormalization, layers.GroupNormalization, layers.LayerNormalization)
    for kind in (*kinds, layers.RMSNormalization, layers.UnitNormalization):
        kind.call = answered(kind.call)


def pytest_sessionfinish(session: Any) -> None:
    """Fail where ours differs, though Keras' own tests pass."""
    if not ANSWERS or any(not answer.excess <= 1 for answer in ANSWERS):
        session.exitstatus = 1


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print how many calls were answered, and how far off."""
    for line in table(ANSWERS):
        terminalreporter.write_line(line)
    terminalreporter.write_line(f"left out: {LEFT_OUT}")
    for answer in ANSWERS:
        if not answer.excess <= 1:
            terminalreporter.write_line(f"FAILED {answer}")
