"""Weights that are normalized themselves, from torch to Flax and Keras and back, by their hands."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tests.norm.oracles.answers import Answer, compared
from traindx.norm.convert.converting import Order, convert
from traindx.norm.convert.frameworks import catalog
from traindx.norm.convert.frameworks.framework import by_pattern

IN, OUT, B = 4, 6, 5
RTOL, ATOL = 1e-5, 1e-5
X = np.random.default_rng(2).normal(0.3, 1, (B, IN)).astype(np.float32)


def answers(here: Sequence[str]) -> Iterator[Answer]:
    """The directions between the frameworks that are here."""
    if {"torch", "linen"} <= set(here):
        yield from both_ways()
        yield spectral_to_linen()
    if {"torch", "keras"} <= set(here):
        yield spectral_to_keras()


def layer(normalization: str, steps: int) -> Any:
    """A linear layer of torch whose weight is normalized; `steps` of power iteration."""
    torch = import_module("torch")
    torch.manual_seed(3)
    wrap = getattr(import_module("torch.nn.utils.parametrizations"), normalization)
    made = wrap(torch.nn.Linear(IN, OUT))
    for _ in range(steps):
        made(torch.from_numpy(X))
    return made.eval()


def saved(made: Any, folder: Path, target: str, suffix: str) -> tuple[Path, np.ndarray]:
    """What was written, and what the layer answers without its bias."""
    torch = import_module("torch")
    model = torch.nn.Sequential()
    model.add_module("fc", made)
    torch.save(model.state_dict(), folder / "source.pt")
    source, found = catalog.read(folder / "source.pt", None, by_pattern(()))
    out = folder / f"moved{suffix}"
    done = convert(source, found, Order(catalog.framework(target), out=out))
    assert not done.refused, done.refused
    with torch.no_grad():
        return out, (made(torch.from_numpy(X)) - made.bias).numpy()


def model_of_linen(normalization: str) -> Any:
    """As a user of Flax writes it; the wrapper gets its number from Flax."""
    linen = import_module("flax.linen")

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x: Any, **settings: Any) -> Any:
            dense = linen.Dense(OUT, use_bias=False, name="fc")
            return getattr(linen, normalization)(dense)(x, **settings)

    return Net()


def both_ways() -> Iterator[Answer]:
    restore = import_module("flax.serialization").msgpack_restore
    with tempfile.TemporaryDirectory() as folder:
        out, before = saved(layer("weight_norm", 0), Path(folder), "linen", ".msgpack")
        tree = restore(out.read_bytes())
        after = model_of_linen("WeightNorm").apply(tree, X)
        yield compared("weight norm, torch to linen", "fc", [(after, before)], rtol=RTOL, atol=ATOL)
        yield returned(out, Path(folder), before)


def returned(out: Path, folder: Path, before: np.ndarray) -> Answer:
    """The same layer, from Flax back to torch."""
    torch = import_module("torch")
    source, found = catalog.read(out, None, by_pattern(()))
    path = folder / "back.pt"
    done = convert(source, found, Order(catalog.framework("torch"), out=path))
    assert not done.refused, done.refused
    made = layer("weight_norm", 0)
    model = torch.nn.Sequential()
    model.add_module("fc", made)
    model.load_state_dict(torch.load(path, weights_only=True), strict=False)
    with torch.no_grad():
        after = (model(torch.from_numpy(X)) - made.bias).numpy()
    name = "weight norm, linen to torch"
    return compared(name, "fc", [(after, before)], rtol=RTOL, atol=ATOL)


def spectral_to_linen() -> Answer:
    restore = import_module("flax.serialization").msgpack_restore
    with tempfile.TemporaryDirectory() as folder:
        out, before = saved(layer("spectral_norm", 500), Path(folder), "linen", ".msgpack")
        tree = restore(out.read_bytes())
    after = model_of_linen("SpectralNorm").apply(tree, X, update_stats=False)
    name = "spectral norm, torch to linen"
    return compared(name, "fc", [(after, before)], rtol=RTOL, atol=ATOL)


def spectral_to_keras() -> Answer:
    keras = import_module("keras")
    with tempfile.TemporaryDirectory() as folder:
        out, before = saved(layer("spectral_norm", 20), Path(folder), "keras", ".weights.h5")
        dense = keras.layers.Dense(OUT, use_bias=False, name="fc_layer")
        wrapped = keras.layers.SpectralNormalization(dense, name="fc")
        inputs = keras.Input((IN,))
        model = keras.Model(inputs, wrapped(inputs))
        model.load_weights(out)
        after = keras.ops.convert_to_numpy(wrapped(X, training=False))
    name = "spectral norm, torch to keras"
    return compared(name, "fc", [(after, before)], rtol=RTOL, atol=ATOL)
