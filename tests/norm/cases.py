"""Small inputs for every kind of layer, in eighths, so that fractions and floats start alike.

Extents differ from one another wherever the layer lets them, so that no axis can stand for another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx.norm import layers
from traindx.norm.choices import EpsPlacement, Estimator, GroupOrder
from traindx.norm.exact_layers import Parameters
from traindx.norm.presets import preset
from traindx.norm.reference import PowerVectors, RunningStats
from traindx.norm.spec import Mask, NormSpec

Floats = NDArray[np.float64]


def eighths(seed: int, *shape: int, mean: float = 0.25) -> Floats:
    """Random eighths, none of them 0."""
    drawn = np.random.default_rng(seed).integers(-24, 24, shape) / 8 + mean
    return np.where(drawn == 0, 0.125, drawn)


@dataclass(frozen=True)
class Case:
    """A layer and everything it is given."""

    spec: NormSpec
    x: Floats
    weight: Floats | None = None
    bias: Floats | None = None
    running: RunningStats | PowerVectors | None = None
    mask: Floats | None = None
    dy: Floats = field(init=False)
    h: Floats = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dy", eighths(101, *self.x.shape))
        object.__setattr__(self, "h", eighths(102, *self.x.shape))

    @property
    def given(self) -> Parameters:
        """What the rational twin takes, u and v after their iterations left to the caller."""
        stats = self.running if isinstance(self.running, RunningStats) else None
        return Parameters(
            weight=_listed(self.weight),
            bias=_listed(self.bias),
            running_mean=_listed(stats and stats.mean),
            running_var=_listed(stats and stats.var),
            mask=_listed(None if self.mask is None else np.broadcast_to(self.mask, self.x.shape)),
        )


def _listed(values: Any) -> Any:
    return None if values is None else np.asarray(values).tolist()


def _channels(spec: NormSpec, x: Floats, axis: int = 1, **rest: Any) -> Case:
    count = x.shape[axis]
    return Case(spec, x, eighths(1, count), eighths(2, count), **rest)


def _running(count: int) -> RunningStats:
    return RunningStats(eighths(3, count), np.abs(eighths(4, count)) + 0.5, 2)


def _last(spec: NormSpec, x: Floats, ndim: int = 1, *, bias: bool = True) -> Case:
    shape = x.shape[-ndim:]
    return Case(spec, x, eighths(1, *shape), eighths(2, *shape) if bias else None)


X2, X3, X4 = eighths(10, 5, 3), eighths(11, 3, 2, 4), eighths(12, 2, 3, 1, 4)
WIDE = eighths(13, 2, 6, 2)
EPS = 0.25  # as large as the spreads, so that its place shows

BATCH = preset("torch.BatchNorm1d", eps=EPS)
CASES: Mapping[str, Case] = {
    "BatchNorm of rows": _channels(BATCH, X2, running=_running(3)),
    "BatchNorm with space": _channels(BATCH, X3, running=_running(2)),
    "BatchNorm averaging all batches": _channels(
        preset("torch.BatchNorm2d", momentum=None), X4, running=_running(3)
    ),
    "BatchNorm of flax": _channels(
        preset("flax.BatchNorm", mask=None), X3, axis=2, running=_running(4)
    ),
    "BatchNorm of keras": _channels(
        preset("keras.BatchNormalization", mask=None), X2, running=_running(3)
    ),
    "BatchNorm of onnx": _channels(
        preset("onnx.BatchNormalization", eps=EPS), X3, running=_running(2)
    ),
    "BatchNorm of mlx": _channels(preset("mlx.BatchNorm"), X2, running=_running(3)),
    "BatchNorm of tf_keras, fused": _channels(
        preset("tf_keras.BatchNormalization.fused"), X3, axis=2, running=_running(4)
    ),
    "BatchNorm with a mask": _channels(
        replace(BATCH, mask=Mask()),
        X3,
        running=_running(2),
        mask=np.array([[[1, 0, 1, 1]], [[0, 1, 1, 0]], [[1, 1, 0, 1]]]),
    ),
    "BatchNorm with the mask of keras": _channels(
        replace(BATCH, mask=Mask(added=1e-7)), X2, mask=np.array([[1], [0], [1], [1], [0]])
    ),
    "Ghost BatchNorm": _channels(
        layers.batch_norm(virtual_batch_size=2, eps=EPS),
        eighths(14, 4, 3, 2),
        running=_running(3),
    ),
    "Batch Renorm": _channels(
        layers.batch_renorm(rmin=0.5, rmax=1.25, dmax=0.5), X3, running=_running(2)
    ),
    "Batch Renorm without bounds": _channels(layers.batch_renorm(), X2, running=_running(3)),
    "LayerNorm": _last(preset("torch.LayerNorm", eps=EPS), X2),
    "LayerNorm of two axes": _last(preset("torch.LayerNorm", normalized_ndim=2), X3, 2),
    "LayerNorm of keras": _last(preset("keras.LayerNormalization"), X2),
    "LayerNorm of an unbiased variance": _last(
        replace(layers.layer_norm(eps=EPS), variance=Estimator.UNBIASED), X2
    ),
    "scaling by std without centring": _last(replace(layers.layer_norm(), centered=False), X2),
    "GroupNorm": _channels(preset("torch.GroupNorm", num_groups=3, eps=EPS), WIDE),
    "GroupNorm, interleaved": _channels(
        layers.group_norm(num_groups=3, order=GroupOrder.INTERLEAVED), WIDE
    ),
    "GroupNorm of mlx": _channels(preset("mlx.GroupNorm", num_groups=2), X3, axis=2),
    "GroupNorm, scale per group": Case(
        preset("onnx.GroupNormalization-18", num_groups=2), WIDE, eighths(1, 2), eighths(2, 2)
    ),
    "GroupNorm, interleaved, scale per group": Case(
        layers.group_norm(num_groups=2, order=GroupOrder.INTERLEAVED, affine_groups=True),
        WIDE,
        eighths(1, 2),
        eighths(2, 2),
    ),
    "InstanceNorm": _channels(preset("torch.InstanceNorm1d", eps=EPS), X3),
    "InstanceNorm, tracked": _channels(
        preset("torch.InstanceNorm1d", variance=Estimator.UNBIASED, momentum=0.1),
        X3,
        running=_running(2),
    ),
    "InstanceNorm, channels last": _channels(preset("flax.InstanceNorm", mask=None), X3, axis=2),
    "RMSNorm": _last(layers.rms_norm(eps=EPS), X2, bias=False),
    "RMSNorm with machine epsilon": _last(preset("torch.RMSNorm"), X3, bias=False),
    "RMSNorm of Gemma": _last(preset("transformers.GemmaRMSNorm"), X2, bias=False),
    "FilterResponseNorm": _channels(preset("paper.FilterResponseNorm"), X4),
    "MeanVarianceNormalization": Case(layers.mean_variance(eps=EPS), X4),
    "unit norm": Case(preset("torch.normalize"), X3),
    "unit norm, greatest inside": Case(preset("tf.l2_normalize", eps=8.0), X2),
    "unit norm, greatest outside": Case(
        layers.unit_norm(eps=3.0, eps_placement=EpsPlacement.MAX_OUTSIDE_ROOT), X2
    ),
    "sum of magnitudes": Case(preset("onnx.LpNormalization", p=1), X3),
    "sum of magnitudes and eps": Case(
        layers.unit_norm(p=1, eps=EPS, eps_placement=EpsPlacement.OUTSIDE_ROOT), X2
    ),
    "euclidean norm of onnx": Case(preset("onnx.LpNormalization"), X3),
    "WeightNorm": Case(preset("torch.weight_norm"), X3, eighths(1, 3)),
    "WeightNorm of flax": Case(preset("flax.WeightNorm"), X2, eighths(1, 3)),
    "SpectralNorm": Case(
        preset("torch.spectral_norm"), X3, running=PowerVectors(eighths(5, 3), eighths(6, 8))
    ),
    "SpectralNorm of flax, two iterations": Case(
        preset("flax.SpectralNorm", iterations=2),
        X2,
        running=PowerVectors(eighths(5, 3), eighths(6, 5)),
    ),
    "LRN of torch, even": Case(preset("torch.LocalResponseNorm", size=2, alpha=0.5), WIDE),
    "LRN of torch, odd": Case(preset("torch.LocalResponseNorm", size=3, alpha=0.5), X4),
    "LRN of onnx, even": Case(preset("onnx.LRN", size=4, alpha=0.5, beta=0.5), WIDE),
    "LRN of tensorflow": Case(preset("tf.local_response_normalization", size=3), X3),
}
