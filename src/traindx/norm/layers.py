"""The layers as families: a function a family, whose arguments are what frameworks choose.

A `momentum` is always the weight of the new value, whatever the framework's own argument means.
"""

from __future__ import annotations

from traindx.norm.choices import (
    Accumulation,
    Cast,
    EmptyBatch,
    EpsPlacement,
    Estimator,
    GroupOrder,
    OneSample,
    Passes,
    Scale,
)
from traindx.norm.spec import (
    Axes,
    Groups,
    Mask,
    NormSpec,
    Renorm,
    Running,
    Spectral,
    Window,
)


def batch_norm(
    *,
    axis: int = 1,
    eps: float = 1e-5,
    momentum: float | None = 0.1,
    variance: Estimator = Estimator.BIASED,
    one_sample: OneSample = OneSample.COMPUTE,
    empty: EmptyBatch = EmptyBatch.KEEP,
    mask: Mask | None = None,
    virtual_batch_size: int | None = None,
    counted: bool = False,
    accumulation: Accumulation = Accumulation.FLOAT32,
    passes: Passes = Passes.TWO,
) -> NormSpec:
    """One statistic for each index of `axis`; with virtual batches, for each of those too."""
    return NormSpec(
        kind="BatchNorm" if virtual_batch_size is None else "GhostBatchNorm",
        reduced=Axes((axis,), others=True),
        affine=Axes((axis,)),
        eps=eps,
        running=Running(variance, momentum, Axes((axis,)), counted),
        one_sample=one_sample,
        empty=empty,
        groups=None if virtual_batch_size is None else Groups(0, size=virtual_batch_size),
        mask=mask,
        accumulation=accumulation,
        passes=passes,
    )


def batch_renorm(
    *,
    axis: int = 1,
    eps: float = 1e-3,
    momentum: float | None = 0.01,
    rmin: float | None = None,
    rmax: float | None = None,
    dmax: float | None = None,
) -> NormSpec:
    """Batch Renorm: BatchNorm corrected toward the running statistics."""
    return NormSpec(
        kind="BatchRenorm",
        reduced=Axes((axis,), others=True),
        affine=Axes((axis,)),
        eps=eps,
        running=Running(Estimator.BIASED, momentum, Axes((axis,)), counted=False, of_roots=True),
        renorm=Renorm(rmin, rmax, dmax),
    )


def layer_norm(
    *,
    normalized_ndim: int = 1,
    eps: float = 1e-5,
    mask: Mask | None = None,
    accumulation: Accumulation = Accumulation.FLOAT32,
    passes: Passes = Passes.TWO,
) -> NormSpec:
    """One statistic for each place in front of the last `normalized_ndim` axes."""
    last = Axes(tuple(range(-normalized_ndim, 0)))
    return NormSpec(
        kind="LayerNorm",
        reduced=last,
        affine=last,
        eps=eps,
        mask=mask,
        accumulation=accumulation,
        passes=passes,
    )


def group_norm(
    *,
    num_groups: int,
    axis: int = 1,
    eps: float = 1e-5,
    order: GroupOrder = GroupOrder.BLOCKED,
    affine_groups: bool = False,
    one_sample: OneSample = OneSample.COMPUTE,
    mask: Mask | None = None,
    passes: Passes = Passes.TWO,
) -> NormSpec:
    """One statistic for each sample and group of channels; -1 groups are single channels."""
    return NormSpec(
        kind="GroupNorm",
        reduced=Axes((0,), others=True),
        affine=Axes((axis,)),
        eps=eps,
        one_sample=one_sample,
        groups=Groups(axis, count=num_groups, order=order, affine=affine_groups),
        mask=mask,
        passes=passes,
    )


def instance_norm(
    *,
    axis: int = 1,
    eps: float = 1e-5,
    momentum: float | None = None,
    variance: Estimator | None = None,
    one_sample: OneSample = OneSample.COMPUTE,
    mask: Mask | None = None,
    passes: Passes = Passes.TWO,
) -> NormSpec:
    """One statistic for each sample and channel; tracked if a running `variance` is named."""
    tracked = None
    if variance is not None:
        # Without a momentum the new value has weight 0: torch reads None so, and never counts.
        tracked = Running(variance, momentum or 0.0, Axes((axis,)), counted=False)
    return NormSpec(
        kind="InstanceNorm",
        reduced=Axes((0, axis), others=True),
        affine=Axes((axis,)),
        eps=eps,
        running=tracked,
        one_sample=one_sample,
        mask=mask,
        passes=passes,
    )


def rms_norm(
    *,
    normalized_ndim: int = 1,
    eps: float | None = 1e-6,
    weight_offset: float = 0.0,
    cast: Cast = Cast.AFTER_AFFINE,
    mask: Mask | None = None,
) -> NormSpec:
    """Division by the root mean square; nothing is centred."""
    last = Axes(tuple(range(-normalized_ndim, 0)))
    return NormSpec(
        kind="RMSNorm",
        reduced=last,
        affine=last,
        eps=eps,
        centered=False,
        scale=Scale.ROOT_MEAN_SQUARE,
        weight_offset=weight_offset,
        cast=cast,
        mask=mask,
    )


def filter_response_norm(*, axis: int = 1, eps: float = 1e-6) -> NormSpec:
    """Each sample's channel over its root mean square; `tlu` is the activation that follows."""
    return NormSpec(
        kind="FilterResponseNorm",
        reduced=Axes((0, axis), others=True),
        affine=Axes((axis,)),
        eps=eps,
        centered=False,
        scale=Scale.ROOT_MEAN_SQUARE,
    )


def mean_variance(*, axes: tuple[int, ...] = (0, 2, 3), eps: float = 1e-9) -> NormSpec:
    """(x - mean) / (standard deviation + eps), without weight and bias."""
    return NormSpec(
        kind="MeanVarianceNormalization",
        reduced=Axes(axes),
        eps=eps,
        eps_placement=EpsPlacement.OUTSIDE_ROOT,
    )


def unit_norm(
    *,
    axis: int = -1,
    p: int = 2,
    eps: float = 1e-12,
    eps_placement: EpsPlacement = EpsPlacement.MAX_OUTSIDE_ROOT,
) -> NormSpec:
    """Division by the p-norm along `axis`, for p of 1 or 2."""
    return NormSpec(
        kind="LpNorm",
        reduced=Axes((axis,)),
        eps=eps,
        eps_placement=eps_placement,
        centered=False,
        scale=Scale.EUCLIDEAN_NORM if p == 2 else Scale.SUM_OF_MAGNITUDES,
    )


def weight_norm(
    *, axis: int = 0, eps: float = 0.0, eps_placement: EpsPlacement = EpsPlacement.NONE
) -> NormSpec:
    """A direction v over its length along all axes but `axis`, times a magnitude g."""
    return NormSpec(
        kind="WeightNorm",
        reduced=Axes((axis,), others=True),
        affine=Axes((axis,)),
        eps=eps,
        eps_placement=eps_placement,
        centered=False,
        scale=Scale.EUCLIDEAN_NORM,
    )


def spectral_norm(
    *,
    axis: int = 0,
    iterations: int = 1,
    eps: float = 1e-12,
    eps_placement: EpsPlacement = EpsPlacement.MAX_OUTSIDE_ROOT,
    u_first: bool = True,
) -> NormSpec:
    """A weight over its largest singular value, as power iterations estimate it."""
    return NormSpec(
        kind="SpectralNorm",
        reduced=Axes((), others=True),
        eps=eps,
        eps_placement=eps_placement,
        centered=False,
        scale=Scale.EUCLIDEAN_NORM,
        spectral=Spectral(axis, iterations, u_first),
    )


def local_response_norm(
    *,
    size: int,
    axis: int = 1,
    alpha: float = 1e-4,
    beta: float = 0.75,
    k: float = 1.0,
    early: bool = True,
    per_element: bool = True,
    accumulation: Accumulation = Accumulation.INPUT,
) -> NormSpec:
    """Each element over a power of its window's squares along `axis`.

    Args:
        size: Elements of the window.
        axis: Axis of the channels.
        alpha: Weight of the squares.
        beta: The power.
        k: What is added.
        early: Whether a window of even size holds one neighbour more before, or after.
        per_element: Whether alpha is divided by the size.
        accumulation: The type an emulation computes in.
    """
    before = size // 2 if early else (size - 1) // 2
    return NormSpec(
        kind="LocalResponseNorm",
        reduced=Axes((axis,)),
        centered=False,
        window=Window(before, size - 1 - before, alpha / size if per_element else alpha, beta, k),
        accumulation=accumulation,
    )
