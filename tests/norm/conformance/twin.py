"""A target in plain NumPy that is right, or wrong in one way that its name says.

It shares no arithmetic with what judges it: every kind is written out here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from traindx.norm.conformance.precision import laid_out
from traindx.norm.conformance.target import Answer, Call, UnsupportedError

DEFAULTS = {"batch_norm": 1e-5, "layer_norm": 1e-5, "group_norm": 1e-5, "rms_norm": 2.0**-23}

FORWARD_ONLY = (
    *("eps outside", "divides by n - 1", "channels last", "axis 1", "keeps the mean"),
    *("divides by rms", "one group", "interleaved", "1 + weight"),
)
"""Faults of which no gradient is written out."""


@dataclass
class Twin:
    """A framework with one layer.

    Attributes:
        kind: What its layer is.
        fault: What is wrong with it; empty if nothing is.
    """

    kind: str = "batch_norm"
    fault: str = ""
    name: str = "twin"
    version: str = "twin 1.0"
    slow: bool = False
    asked: int = 0

    @property
    def layers(self) -> Mapping[str, str]:
        return {"Layer": self.kind}

    def code(self, call: Call, aspect: str) -> str:
        return "got = x"

    def run(self, call: Call) -> Answer:
        self.asked += 1
        if call.dtype not in ("float32", "float64") or call.mask is not None:
            raise UnsupportedError("only float32 and float64, without masks")
        if self.fault == "raises":
            raise ZeroDivisionError("by the framework")
        if self.fault == "wrong shape":
            return Answer(call.x[..., :1])
        if self.kind == "local_response_norm":
            return Answer(self._window(call), call.dtype)
        if "axis" in call.options:
            raise UnsupportedError("its axis is fixed")
        return self._normalized(call)

    # -- layers that share statistics --------------------------------------------------------------

    def _normalized(self, call: Call) -> Answer:
        narrow = self.fault == "float64 in float32"
        dtype: Any = "float32" if narrow else call.dtype
        x = laid_out(call.x.astype(dtype), call.memory)
        if call.memory == "sliced" and self.fault == "reads the base":
            x = np.asarray(x.base)[..., : x.shape[-1]]
        if not x.size:
            return self._empty(call)
        v, axes = self._view(call, x)
        n = int(np.prod([v.shape[a] for a in axes]))
        if n == 1 and self.kind == "batch_norm" and self.fault != "one sample passes":
            raise ValueError("more than one value")
        if n == 1 and self.fault == "one sample passes":
            return Answer(
                call.x, call.dtype, running=self._old(call, x), batches=0, affine=(True, True)
            )
        eps = self._eps(call)
        rms = self.kind == "rms_norm"
        mean = np.zeros((), dtype) if rms else v.mean(axis=axes, keepdims=True, dtype=dtype)
        m2 = (v * v if rms else (v - mean) ** 2).mean(axis=axes, keepdims=True, dtype=dtype)
        if self.fault.startswith("one pass"):
            m2 = (v * v).mean(axis=axes, keepdims=True, dtype=dtype) - mean * mean
        if self.fault == "one pass clipped":
            m2 = np.maximum(m2, 0)
        spread = m2 * dtype_of(dtype, n / (n - 1)) if self.fault == "divides by n - 1" else m2
        z = v if self.fault in ("keeps the mean", "divides by rms") else v - mean
        if self.fault == "divides by rms":
            spread = (v * v).mean(axis=axes, keepdims=True, dtype=dtype)
        rate = 1 / np.sqrt(spread + eps)
        if self.fault == "eps outside":
            rate = 1 / (np.sqrt(spread) + eps)
        if not call.training:
            return self._evaluated(call, x, mean, m2, eps)
        normalized = (z * rate).reshape(x.shape)
        if self.fault == "something else":
            normalized = normalized + 0.01 * np.sin(7 * normalized)
        if self.fault == "nan spreads":
            normalized = normalized + 0 * x.sum()
        y = self._affine(call, normalized, x)
        return Answer(
            y.astype(np.float64),
            call.dtype,
            *self._pulled(call, v, axes, z * rate, rate),
            running=self._moved(call, x, mean, m2, n),
            batches=1 if self.kind == "batch_norm" else None,
            affine=(True, self.kind != "rms_norm"),
        )

    def _eps(self, call: Call) -> Any:
        default = DEFAULTS[self.kind]
        if self.kind == "rms_norm" and call.dtype == "float64":
            default = 2.0**-52
        eps = call.options.get("eps", 1e-3 if self.fault == "eps 1e-3" else default)
        if self.fault == "ignores eps":
            eps = default
        if self.fault == "options in float32":
            eps = float(np.float32(eps))
        return dtype_of(call.dtype, eps)

    def _view(self, call: Call, x: Any) -> tuple[Any, tuple[int, ...]]:
        if self.kind in ("layer_norm", "rms_norm"):
            return x, (1,) if self.fault == "axis 1" else (x.ndim - 1,)
        if self.kind == "batch_norm":
            kept = x.ndim - 1 if self.fault == "channels last" else 1
            return x, tuple(a for a in range(x.ndim) if a != kept)
        groups = call.options["num_groups"]
        groups = 1 if self.fault == "one group" else groups
        size = x.shape[1] // groups
        if self.fault == "interleaved":
            return x.reshape(x.shape[0], size, groups, *x.shape[2:]), (1, *range(3, x.ndim + 1))
        return x.reshape(x.shape[0], groups, size, *x.shape[2:]), tuple(range(2, x.ndim + 1))

    def _affine(self, call: Call, normalized: Any, x: Any) -> Any:
        if call.weight is None:
            return normalized
        weight = call.weight.astype(x.dtype)
        if self.fault == "1 + weight":
            weight = weight + 1
        shape = self._along(x)
        y = normalized * weight.reshape(shape)
        if call.bias is not None:
            y = y + call.bias.astype(x.dtype).reshape(shape)
        return y

    def _along(self, x: Any) -> tuple[int, ...]:
        """How weight and bias lie in the input."""
        kept = (
            1 if self.kind in ("batch_norm", "group_norm") or self.fault == "axis 1" else x.ndim - 1
        )
        kept = x.ndim - 1 if self.fault == "channels last" else kept
        return tuple(-1 if axis == kept else 1 for axis in range(x.ndim))

    def _pulled(self, call: Call, v: Any, axes: tuple[int, ...], xh: Any, rate: Any) -> list[Any]:
        if call.dy is None or self.fault in FORWARD_ONLY:
            return [None, None, None]
        v, xh, rate = (np.asarray(a, np.float64) for a in (v, xh, rate))
        inner = xh.reshape(call.x.shape)
        ones = np.ones_like(call.x)
        bare = call.where(bias=None)
        scale = self._affine(bare, ones, ones)
        g = (call.dy * scale).reshape(v.shape)
        mean = g.mean(axis=axes, keepdims=True) if self.kind != "rms_norm" else 0.0
        slope = xh * (g * xh).mean(axis=axes, keepdims=True)
        if self.fault in ("gradient of constants", "gradient without mean"):
            mean = 0.0
        if self.fault in ("gradient of constants", "gradient without variance"):
            slope = 0.0
        dx = (rate * (g - mean - slope)).reshape(call.x.shape)
        last = self.kind in ("layer_norm", "rms_norm")
        kept = call.x.ndim - 1 if last else 1
        others = tuple(a for a in range(call.x.ndim) if a != kept)
        dweight, dbias = (call.dy * inner).sum(axis=others), call.dy.sum(axis=others)
        return [dx, dweight, None if self.kind == "rms_norm" else dbias]

    # -- running statistics ------------------------------------------------------------------------

    def _old(self, call: Call, x: Any) -> Any:
        if self.kind != "batch_norm":
            return None
        channels = x.shape[-1 if self.fault == "channels last" else 1]
        return call.running or (np.zeros(channels), np.ones(channels))

    def _moved(self, call: Call, x: Any, mean: Any, m2: Any, n: int) -> Any:
        old = self._old(call, x)
        if old is None:
            return None
        m = call.options.get("momentum", 0.01 if self.fault == "momentum 0.01" else 0.1)
        if self.fault == "momentum of the old" and "momentum" in call.options:
            m = 1 - m
        if self.fault == "frozen":
            m = 0.0
        var = m2.ravel().astype(np.float64)
        var = var if self.fault == "running biased" else var * n / (n - 1)
        return (1 - m) * old[0] + m * mean.ravel(), (1 - m) * old[1] + m * var

    def _evaluated(self, call: Call, x: Any, mean: Any, m2: Any, eps: Any) -> Answer:
        assert call.running is not None
        shape = self._along(x)
        held = [values.reshape(shape) for values in call.running]
        if self.fault == "evaluates by the batch":
            held = [mean, m2]
        if self.fault == "moves before evaluating":
            held = [0.9 * a + 0.1 * b for a, b in zip(held, (mean, m2), strict=True)]
        outside = self.fault == "eps outside"
        root = np.sqrt(held[1]) + eps if outside else np.sqrt(held[1] + eps)
        y = (x - held[0]) / root
        return Answer(
            np.asarray(self._affine(call, y, x), np.float64), call.dtype, running=call.running
        )

    def _empty(self, call: Call) -> Answer:
        old = self._old(call, call.x)
        if old is not None and self.fault == "empty poisons":
            old = (old[0] * np.nan, old[1] * np.nan)
        return Answer(call.x, call.dtype, running=old, batches=1, affine=(True, True))

    # -- local response ----------------------------------------------------------------------------

    def _window(self, call: Call) -> Any:
        given = {"alpha": 1e-4, "beta": 0.75, "k": 1.0, **call.options}
        size, x = given["size"], call.x.astype(call.dtype)
        before = (size - 1) // 2 if self.fault == "late window" else size // 2
        alpha = given["alpha"] if self.fault == "whole alpha" else given["alpha"] / size
        k = 2.0 if self.fault == "k 2" and "k" not in call.options else given["k"]
        sums = np.zeros_like(x)
        held = np.zeros_like(x[:, 0])
        channels = min(x.shape[:2]) if self.fault == "loops over samples" else x.shape[1]
        for c in range(channels):
            low, high = max(c - before, 0), c + size - before
            sums[:, c] = (x[:, low:high] ** 2).sum(axis=1)
            if self.fault == "sliding sum":
                new = x[:, high - 1 : high] if c else x[:, :high]
                held = held + (new**2).sum(axis=1)
                if c - before > 0:
                    held = held - x[:, c - before - 1] ** 2
                sums[:, c] = np.maximum(held, 0)
        return (
            x
            / (dtype_of(call.dtype, k) + dtype_of(call.dtype, alpha) * sums)
            ** dtype_of(call.dtype, given["beta"])
        ).astype(np.float64)


def dtype_of(dtype: Any, value: float) -> Any:
    """A number of the type computed in."""
    return np.dtype(dtype).type(value)
