"""The layers of the frameworks by name, as they behave where they were measured.

A name is `FRAMEWORK.LAYER`, spelled as the framework spells it. Sources:
`measured` with the version that was run, `read` where only source or specification was read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from types import MappingProxyType
from typing import Any

from traindx.errors import ArgumentError
from traindx.messages import say
from traindx.norm import layers
from traindx.norm.choices import (
    Accumulation,
    Cast,
    EmptyBatch,
    EpsPlacement,
    Estimator,
    GroupOrder,
    OneSample,
    Passes,
)
from traindx.norm.spec import Mask, NormSpec


@dataclass(frozen=True, slots=True)
class Preset:
    """A framework's layer.

    Attributes:
        name: Framework and layer.
        build: Makes its specification from options.
        source: How its behaviour is known.
        note: What a reader could stumble over.
    """

    name: str
    build: Callable[..., NormSpec]
    source: str
    note: str = ""

    @property
    def options(self) -> dict[str, Any]:
        """What can be chosen, with the framework's default; `inspect.Parameter.empty` if none."""
        return {p.name: p.default for p in inspect.signature(self.build).parameters.values()}


_TORCH = "measured, torch 2.13.0"
_FLAX = "measured, flax 0.12.8 (linen and nnx)"
_KERAS = "measured, keras 3.15.1 (torch, jax, tensorflow)"
_TF_KERAS = "measured, tf_keras 2.21.0"
_TF = "measured, tensorflow 2.21.0"
_ONNX = "measured, onnx 1.23.2 reference and onnxruntime 1.32.0"
_MLX = "measured, mlx 0.32.4"
_PADDLE = "measured, paddlepaddle 3.3.1"

_torch_batch_norm = partial(
    layers.batch_norm,
    variance=Estimator.UNBIASED,
    one_sample=OneSample.REFUSE,
    empty=EmptyBatch.KEEP_AND_COUNT,
    counted=True,
)
_torch_instance_norm = partial(layers.instance_norm, one_sample=OneSample.REFUSE)
_poisoned = partial(layers.batch_norm, axis=-1, empty=EmptyBatch.POISON)
_keras_batch_norm = partial(_poisoned, eps=1e-3, momentum=0.01)
_tf_fused = partial(_keras_batch_norm, variance=Estimator.UNBIASED_OR_ZERO)
_last = {"axis": -1}

_ALL = (
    Preset(
        "torch.BatchNorm1d",
        _torch_batch_norm,
        _TORCH,
        "A refused single sample has moved the counter already.",
    ),
    Preset("torch.BatchNorm2d", _torch_batch_norm, _TORCH),
    Preset("torch.BatchNorm3d", _torch_batch_norm, _TORCH),
    Preset(
        "torch.SyncBatchNorm",
        _torch_batch_norm,
        _TORCH,
        "Without a process group it is BatchNorm; `traindx.norm.sync` computes it over shards.",
    ),
    Preset("torch.LayerNorm", layers.layer_norm, _TORCH),
    Preset(
        "torch.GroupNorm",
        partial(layers.group_norm, one_sample=OneSample.REFUSE_LONE),
        _TORCH,
        "On the CPU, channels_last input is normalized in one pass and cancels at a large mean.",
    ),
    *(
        Preset(
            f"torch.InstanceNorm{n}d",
            _torch_instance_norm,
            _TORCH,
            "Tracked with variance='unbiased'; momentum None then means 0, and nothing is counted.",
        )
        for n in (1, 2, 3)
    ),
    Preset(
        "torch.RMSNorm",
        partial(layers.rms_norm, eps=None),
        _TORCH,
        "eps None is the machine epsilon of the type computed in, not of a half input.",
    ),
    Preset(
        "torch.LocalResponseNorm",
        layers.local_response_norm,
        _TORCH,
        "An even window holds one neighbour more before the element.",
    ),
    Preset("torch.weight_norm", layers.weight_norm, _TORCH, "No eps: a row of zeros gives NaN."),
    Preset("torch.spectral_norm", layers.spectral_norm, _TORCH),
    Preset(
        "torch.legacy_spectral_norm",
        partial(layers.spectral_norm, u_first=False),
        "read, torch 2.13.0",
    ),
    Preset("torch.normalize", partial(layers.unit_norm, axis=1), _TORCH),
    Preset(
        "flax.BatchNorm",
        partial(
            _poisoned,
            momentum=0.01,
            mask=Mask(),
            passes=Passes.ONE_CLIPPED,
        ),
        _FLAX,
        "Its own momentum is the old value's weight, 0.99.",
    ),
    Preset(
        "flax.LayerNorm",
        partial(layers.layer_norm, eps=1e-6, mask=Mask(), passes=Passes.ONE_CLIPPED),
        _FLAX,
    ),
    Preset(
        "flax.GroupNorm",
        partial(
            layers.group_norm,
            **_last,
            num_groups=32,
            eps=1e-6,
            mask=Mask(),
            passes=Passes.ONE_CLIPPED,
        ),
        _FLAX,
    ),
    Preset(
        "flax.InstanceNorm",
        partial(layers.instance_norm, **_last, eps=1e-6, mask=Mask(), passes=Passes.ONE_CLIPPED),
        _FLAX,
    ),
    Preset("flax.RMSNorm", partial(layers.rms_norm, mask=Mask()), _FLAX),
    Preset(
        "flax.WeightNorm",
        partial(layers.weight_norm, **_last, eps=1e-12, eps_placement=EpsPlacement.INSIDE_ROOT),
        _FLAX,
    ),
    Preset(
        "flax.SpectralNorm",
        partial(
            layers.spectral_norm, **_last, eps_placement=EpsPlacement.INSIDE_ROOT, u_first=False
        ),
        _FLAX,
    ),
    Preset(
        "keras.BatchNormalization",
        partial(_keras_batch_norm, mask=Mask(added=1e-7)),
        _KERAS,
        "Its own momentum is the old value's weight, 0.99. On torch the variance takes one pass.",
    ),
    Preset(
        "keras.BatchNormalization.renorm",
        partial(layers.batch_renorm, **_last),
        _KERAS,
        "Only the bounds that are given clip; r and d meet running roots, not variances.",
    ),
    Preset("keras.LayerNormalization", partial(layers.layer_norm, eps=1e-3), _KERAS),
    Preset(
        "keras.GroupNormalization",
        partial(layers.group_norm, **_last, num_groups=32, eps=1e-3),
        _KERAS,
        "num_groups -1 is InstanceNorm. On torch the variance takes one pass.",
    ),
    Preset("keras.RMSNormalization", layers.rms_norm, _KERAS),
    Preset(
        "keras.SpectralNormalization",
        partial(layers.spectral_norm, **_last, u_first=False),
        _KERAS,
        "It overwrites the kernel in training.",
    ),
    Preset("keras.UnitNormalization", layers.unit_norm, "read, keras 3.15.1"),
    Preset("tf_keras.BatchNormalization", _keras_batch_norm, _TF_KERAS, "2-D, or fused=False."),
    Preset(
        "tf_keras.BatchNormalization.fused",
        _tf_fused,
        _TF_KERAS,
        "The default for 4-D input; its running variance is unbiased.",
    ),
    Preset(
        "tf_keras.BatchNormalization.virtual",
        partial(_keras_batch_norm, virtual_batch_size=2),
        _TF_KERAS,
        "Ghost BatchNorm: virtual_batch_size samples share statistics.",
    ),
    Preset("tf.FusedBatchNormV3", partial(_tf_fused, eps=1e-4, momentum=1.0), _TF),
    Preset(
        "tf.local_response_normalization",
        partial(
            layers.local_response_norm,
            **_last,
            size=11,
            alpha=1.0,
            beta=0.5,
            per_element=False,
        ),
        _TF,
        "size is 2 * depth_radius + 1; alpha is not divided by it.",
    ),
    Preset(
        "tf.l2_normalize",
        partial(layers.unit_norm, eps_placement=EpsPlacement.MAX_INSIDE_ROOT),
        "read, tensorflow 2.21.0",
    ),
    Preset(
        "onnx.BatchNormalization",
        partial(layers.batch_norm, empty=EmptyBatch.POISON),
        _ONNX,
        "Its own momentum is the old value's weight, 0.9.",
    ),
    Preset("onnx.LayerNormalization", layers.layer_norm, _ONNX),
    Preset("onnx.GroupNormalization", layers.group_norm, _ONNX, "Opset 21: scale per channel."),
    Preset(
        "onnx.GroupNormalization-18",
        partial(layers.group_norm, affine_groups=True),
        _ONNX,
        "Scale and bias per group.",
    ),
    Preset("onnx.InstanceNormalization", layers.instance_norm, _ONNX),
    Preset("onnx.RMSNormalization", partial(layers.rms_norm, eps=1e-5), _ONNX),
    Preset(
        "onnx.LRN",
        partial(layers.local_response_norm, early=False),
        _ONNX,
        "An even window holds one neighbour more after the element; onnxruntime refuses it.",
    ),
    Preset("onnx.MeanVarianceNormalization", layers.mean_variance, _ONNX),
    Preset(
        "onnx.LpNormalization",
        partial(layers.unit_norm, eps=0.0, eps_placement=EpsPlacement.ZERO_TO_ZERO),
        _ONNX,
    ),
    Preset(
        "mlx.BatchNorm",
        partial(
            _poisoned,
            variance=Estimator.UNBIASED,
            one_sample=OneSample.REFUSE,
            accumulation=Accumulation.INPUT,
        ),
        _MLX,
        "Before mlx#3817 the running variance was biased.",
    ),
    Preset("mlx.LayerNorm", layers.layer_norm, _MLX),
    Preset(
        "mlx.GroupNorm",
        partial(layers.group_norm, **_last, order=GroupOrder.INTERLEAVED),
        _MLX,
        "pytorch_compatible=True is order='blocked'.",
    ),
    Preset("mlx.InstanceNorm", partial(layers.instance_norm, **_last), _MLX),
    Preset("mlx.RMSNorm", partial(layers.rms_norm, eps=1e-5), _MLX),
    Preset(
        "paddle.BatchNorm",
        partial(layers.batch_norm, one_sample=OneSample.IDENTITY),
        _PADDLE,
        "Its own momentum is the old value's weight, 0.9. A single sample passes unchanged.",
    ),
    Preset("paddle.LayerNorm", layers.layer_norm, _PADDLE),
    Preset("paddle.GroupNorm", layers.group_norm, _PADDLE),
    Preset("paddle.InstanceNorm", layers.instance_norm, _PADDLE),
    Preset("paddle.LocalResponseNorm", layers.local_response_norm, "read, paddlepaddle 3.3.1"),
    Preset(
        "paddle.SpectralNorm",
        partial(layers.spectral_norm, u_first=False),
        "read, paddlepaddle 3.3.1",
    ),
    Preset(
        "transformers.LlamaRMSNorm",
        partial(layers.rms_norm, cast=Cast.BEFORE_AFFINE),
        "read, transformers",
        "The normalized value is rounded to the input's type before the weight.",
    ),
    Preset(
        "transformers.GemmaRMSNorm",
        partial(layers.rms_norm, weight_offset=1.0),
        "read, transformers#29402",
        "Multiplies by 1 + w, in float32.",
    ),
    Preset(
        "paper.BatchRenorm",
        partial(layers.batch_renorm, eps=1e-5, rmin=1 / 3, rmax=3.0, dmax=5.0),
        "read, Ioffe 2017, section 4",
    ),
    Preset(
        "paper.GhostBatchNorm",
        partial(layers.batch_norm, virtual_batch_size=32),
        "read, Hoffer et al. 2017, algorithm 1",
    ),
    Preset(
        "paper.FilterResponseNorm",
        layers.filter_response_norm,
        "read, Singh and Krishnan 2020",
        "Where a channel has one element it is a sign: learn eps there.",
    ),
)

PRESETS: Mapping[str, Preset] = MappingProxyType({preset.name: preset for preset in _ALL})

_PREFIXES = {
    "torch.nn.": "torch.",
    "flax.linen.": "flax.",
    "flax.nnx.": "flax.",
    "keras.layers.": "keras.",
    "mlx.nn.": "mlx.",
    "paddle.nn.": "paddle.",
}


def find_preset(name: str) -> Preset:
    """The preset of a name, with or without the module between framework and layer."""
    for long, short in _PREFIXES.items():
        if name.startswith(long):
            name = short + name[len(long) :]
    if name not in PRESETS:
        known = {key.lower(): key for key in PRESETS}
        last = {key.rpartition(".")[2].lower(): key for key in PRESETS}
        near = [known[key] for key in get_close_matches(name.lower(), known, n=3, cutoff=0.5)]
        near += [last[k] for k in get_close_matches(name.lower(), last, n=2, cutoff=0.8)]
        names = ", ".join(dict.fromkeys(near)) or ", ".join(PRESETS)
        raise ArgumentError(
            say(
                "A preset needs a known name; got {name!r}. Near it: {names}.",
                name=name,
                names=names,
            )
        )
    return PRESETS[name]


def preset(name: str, **options: Any) -> NormSpec:
    """The specification of a framework's layer, its `options` in our terms.

    Whatever the framework calls momentum, here it is the weight of the new value.
    """
    found = find_preset(name)
    unknown = sorted(set(options) - set(found.options))
    missing = [
        key
        for key, default in found.options.items()
        if default is inspect.Parameter.empty and key not in options
    ]
    if unknown or missing:
        said = (
            say("unknown {names}", names=", ".join(unknown))
            if unknown
            else say("no {names}", names=", ".join(missing))
        )
        raise ArgumentError(
            say(
                "{name} takes the options {options}; got {said}. Name those, or "
                "change the spec with dataclasses.replace.",
                name=found.name,
                options=", ".join(found.options),
                said=said,
            )
        )
    return found.build(**options)


def torch_batch_norm(*, eps: float = 1e-5, momentum: float | None = 0.1) -> NormSpec:
    """`torch.nn.BatchNorm1d`, `2d` and `3d`: one statistic for each index of axis 1."""
    return preset("torch.BatchNorm2d", eps=eps, momentum=momentum)


def torch_layer_norm(*, normalized_ndim: int = 1, eps: float = 1e-5) -> NormSpec:
    """`torch.nn.LayerNorm` whose `normalized_shape` has `normalized_ndim` axes."""
    return preset("torch.LayerNorm", normalized_ndim=normalized_ndim, eps=eps)
