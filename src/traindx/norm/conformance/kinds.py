"""The families of layers that are tried, and what each is compared with before it is understood.

The baseline is torch's layer, or the specification of ONNX for what torch does not have: not since
either is right, but since a difference needs two sides. Where an option is asked for, the answer
has to be that option's; where a default differs, that is a convention.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from traindx.norm.conformance.precision import EPS, WIDE
from traindx.norm.presets import PRESETS, preset
from traindx.norm.spec import Axes, NormSpec


@dataclass(frozen=True, slots=True)
class Kind:
    """A family of layers.

    Attributes:
        name: A function of `traindx.norm.layers`.
        baseline: The preset it is compared with.
        needed: Options that have no default.
        asked: Values that no framework has as its default.
        shapes: Inputs on which it is asked for them; no two axes are equally long.
    """

    name: str
    baseline: str
    needed: Mapping[str, Any] = field(default_factory=dict[str, Any])
    asked: Mapping[str, Any] = field(default_factory=dict[str, Any])
    shapes: tuple[tuple[int, ...], ...] = ((2, 6, 4, 8), (3, 4, 10))

    @property
    def spec(self) -> NormSpec:
        """The baseline with the options it needs."""
        return preset(self.baseline, **self.needed)


_ALL = (
    Kind(
        "batch_norm",
        "torch.BatchNorm2d",
        asked={"eps": 0.02, "momentum": 0.25},
        shapes=((2, 6, 4, 8), (3, 4, 10), (7, 5), (2, 3, 5, 4, 6)),
    ),
    Kind("layer_norm", "torch.LayerNorm", asked={"eps": 0.02}, shapes=((2, 6, 4, 8), (3, 5))),
    Kind("group_norm", "torch.GroupNorm", {"num_groups": 2}, {"eps": 0.02}),
    Kind("instance_norm", "torch.InstanceNorm2d", asked={"eps": 0.02}),
    Kind("rms_norm", "torch.RMSNorm", asked={"eps": 0.02}, shapes=((2, 6, 4, 8), (3, 5))),
    Kind(
        "local_response_norm",
        "torch.LocalResponseNorm",
        {"size": 3},
        {"alpha": 0.9, "beta": 0.5, "k": 2.0},
    ),
    Kind("mean_variance", "onnx.MeanVarianceNormalization", shapes=((2, 6, 4, 8),)),
    Kind(
        "unit_norm", "torch.normalize", asked={"axis": 1}, shapes=((2, 6, 4, 8), (3, 4, 10), (3, 5))
    ),
)

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _ALL}


def asked_of(kind: Kind, spec: NormSpec, options: Mapping[str, Any]) -> NormSpec:
    """`spec` with the options that are asked for, and everything else as it was found to be."""
    for name, value in options.items():
        match name:
            case "momentum":
                running = spec.running and replace(spec.running, momentum=value)
                spec = replace(spec, running=running)
            case "axis":
                spec = on_axis(spec, value)
            case "eps":
                spec = replace(spec, eps=value)
            case "num_groups":
                groups = spec.groups and replace(spec.groups, count=value)
                spec = replace(spec, groups=groups)
            case _:
                spec = _windowed(kind, spec, options)
    return spec


def on_axis(spec: NormSpec, axis: int) -> NormSpec:
    """The same layer, of another axis: the one it keeps, cuts, or normalizes along."""
    along = Axes((axis,))
    if spec.groups is not None:
        return replace(spec, groups=replace(spec.groups, axis=axis), affine=along)
    if not spec.reduced.others:
        return replace(spec, reduced=along, affine=along if spec.affine else None)
    kept = (0, axis) if 0 in spec.reduced.named else (axis,)
    running = spec.running and replace(spec.running, axes=along)
    return replace(spec, reduced=Axes(kept, others=True), affine=along, running=running)


def _windowed(kind: Kind, spec: NormSpec, options: Mapping[str, Any]) -> NormSpec:
    """The layer with a window as it is asked for, and in what is not asked as it was found."""
    found, usual = spec.window, kind.spec.window
    assert found is not None, "only layers with a window have these options"
    assert usual is not None, "and so has their baseline"
    known = PRESETS[kind.baseline].options
    given = {**kind.needed, **{k: v for k, v in options.items() if k in known}}
    built = preset(kind.baseline, **given).window
    assert built is not None, "a window was built"
    size = found.before + found.after + 1
    whole = bool(np.isclose(found.alpha, usual.alpha * size, rtol=1e-4))
    alpha = built.alpha * (built.before + built.after + 1) if whole else built.alpha
    if "alpha" not in options and not whole:
        alpha = built.alpha * found.alpha / usual.alpha
    window = replace(
        built,
        alpha=alpha,
        beta=options.get("beta", found.beta),
        k=options.get("k", found.k),
    )
    return replace(spec, window=window)


def resolved(spec: NormSpec, dtype: str) -> NormSpec:
    """The specification with the eps that it has for an input of `dtype`."""
    return spec if spec.eps is not None else replace(spec, eps=EPS[WIDE[dtype]])


def shortened(spec: NormSpec) -> NormSpec:
    """The specification with its numbers rounded to float32."""

    def short(value: float | None) -> float | None:
        return None if value is None else float(np.float32(value))

    running, window = spec.running, spec.window
    if running is not None and running.momentum is not None:
        # A framework that keeps the old value's weight rounds that one.
        new = 1 - float(np.float32(1 - running.momentum))
        running = replace(running, momentum=new)
    if window is not None:
        size = window.before + window.after + 1
        window = replace(
            window,
            alpha=float(np.float32(window.alpha * size)) / size,
            beta=float(np.float32(window.beta)),
            k=float(np.float32(window.k)),
        )
    return replace(spec, eps=short(spec.eps), running=running, window=window)
