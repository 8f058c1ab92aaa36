"""The questions that every layer is asked, as data; nothing here knows what the answers should be.

Inputs come from one seed, so that a target is asked the same each time. Shapes have no two axes of
one length, since a layer that takes the wrong one cannot be told on a square.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from traindx.norm.conformance.kinds import Kind
from traindx.norm.conformance.precision import Numbers, rounded
from traindx.norm.conformance.target import Call

SHAPE = (2, 6, 4, 8)
SCALES = (1e4, 1.0, 3e-3, 1e-4, 1e-6)
"""Standard deviations: each shows an eps of about its square."""
SMALL_SCALES = (1e4, 1.0, 1e-6, 1e-14)
"""The same for norms whose eps is compared with a root."""
RUNGS = (1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6)
"""|mean| / std; float64 is asked for 1e8 as well."""
MEMORIES = ("strided", "sliced")
HALVES = ("float16", "bfloat16")


def random(seed: int, shape: tuple[int, ...]) -> Numbers:
    """Standard normal numbers."""
    return np.random.default_rng(seed).normal(size=shape)


def spread(kind: Kind, layer: str) -> Iterator[Call]:
    """What is left to the layer's defaults: inputs of very different size."""
    scales = SMALL_SCALES if kind.name == "unit_norm" else SCALES
    for seed, scale in enumerate(scales):
        x = rounded(scale * (random(seed, SHAPE) + 0.5), "float32")
        yield Call(layer, x, options=dict(kind.needed))


def squares(kind: Kind, layer: str) -> Iterator[Call]:
    """For a window: inputs in which its squares are small, and in which they are everything."""
    for seed, scale in enumerate((1e-3, 1.0, 30.0, 1e3)):
        x = rounded(scale * random(seed, (2, 6, 3, 5)), "float32")
        yield Call(layer, x, options=dict(kind.needed))


def asked(kind: Kind, layer: str, shape: tuple[int, ...], dtype: str) -> list[Call]:
    """Every option chosen, by several sizes of input."""
    return [
        Call(
            layer,
            rounded(scale * (random(seed, shape) + 0.5), dtype),
            dtype,
            {**kind.needed, **kind.asked},
            dy=rounded(random(10 + seed, shape), dtype),
        )
        for seed, scale in enumerate((1e4, 1.0, 0.1))
    ]


def with_state(call: Call, shapes: dict[str, tuple[int, ...]]) -> Call:
    """The call with weight, bias and running statistics of the shapes that the layer has."""
    state: dict[str, Any] = {
        name: rounded(1.5 + random(40 + i, shapes[name]), call.dtype)
        for i, name in enumerate(("weight", "bias"))
        if name in shapes
    }
    if "running" in shapes:
        mean = rounded(random(50, shapes["running"]), call.dtype)
        var = rounded(0.5 + random(51, shapes["running"]) ** 2, call.dtype)
        state["running"] = (mean, var)
    return call.where(**state)


def ladder(kind: Kind, layer: str, dtype: str) -> Iterator[tuple[float, Call]]:
    """Means of growing size over a standard deviation of 1."""
    shape = (4, 6, 4, 8)
    for seed, rung in enumerate((*RUNGS, *((1e8,) if dtype == "float64" else ()))):
        x = rounded(rung + random(60 + seed, shape), dtype)
        dy = rounded(random(80 + seed, shape), dtype)
        yield rung, Call(layer, x, dtype, dict(kind.needed), dy=dy)


def constants(kind: Kind, layer: str) -> Iterator[Call]:
    """The same number everywhere: once with the default eps, once with one that hides nothing."""
    eps = {"eps": 1e-12} if "eps" in kind.asked else {}
    for value in (2.0, 0.1):
        for options in ({}, eps) if eps else ({},):
            x = rounded(np.full((7, 6, 4, 8), value), "float32")
            yield Call(layer, x, options={**kind.needed, **options})


def memories(kind: Kind, layer: str) -> Iterator[Call]:
    """The same numbers otherwise in memory."""
    for memory in MEMORIES:
        x = rounded(random(3, SHAPE) + 2, "float32")
        dy = rounded(random(4, SHAPE), "float32")
        yield Call(layer, x, options=dict(kind.needed), dy=dy, memory=memory)


def halves(kind: Kind, layer: str) -> Iterator[Call]:
    """Half types: ordinary numbers."""
    for dtype in HALVES:
        x = rounded(random(5, SHAPE) + 0.5, dtype)
        yield Call(layer, x, dtype, dict(kind.needed), dy=rounded(random(6, SHAPE), dtype))


def overflowing(kind: Kind, layer: str) -> Iterator[Call]:
    """Numbers that a type holds and whose squares it does not."""
    signs = np.sign(random(7, SHAPE))
    for dtype, size in (("float16", 300.0), ("bfloat16", 3e19), ("float32", 3e19)):
        yield Call(layer, rounded(size * signs, dtype), dtype, dict(kind.needed))


def subnormal(kind: Kind, layer: str) -> Call:
    """Numbers below the least normal one."""
    return Call(layer, rounded(1e-39 * random(8, SHAPE), "float32"), options=dict(kind.needed))


def spoiled(kind: Kind, layer: str) -> Iterator[tuple[float, Call]]:
    """One element that is no number: the clean input, and what goes into its first element."""
    x = rounded(random(9, SHAPE), "float32")
    for value in (np.nan, np.inf):
        yield value, Call(layer, x, options=dict(kind.needed))


LONE: dict[str, tuple[tuple[int, ...], ...]] = {
    "batch_norm": ((1, 5),),
    "layer_norm": ((3, 1),),
    "group_norm": ((1, 2), (3, 2)),
    "instance_norm": ((2, 3, 1, 1),),
}
"""Shapes in which every statistic is of a single element; for two groups of channels."""


def masked(kind: Kind, layer: str, channels: int) -> Call:
    """Some samples and places left out; a framework's mask has every axis but the channels'."""
    x = rounded(random(11, (4, 5, 3, channels)) + 1, "float32")
    mask = (random(12, (4, 5, 3, 1)) > -0.3).astype(np.float64)
    return Call(layer, x, options=dict(kind.needed), mask=mask)
