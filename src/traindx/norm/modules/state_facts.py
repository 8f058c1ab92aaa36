"""Normalization layers as their tensors tell them, without a model: a state dict is untrusted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from traindx.messages import Message, say
from traindx.norm.audit.facts import Array, Family, Layer, Malformed, Spectral, Statistics, array

_EXACT = 512
"""Rows or columns up to which singular values are computed; beyond, power iterations."""
_ITERATIONS = 100
_STILL = 1e-6
"""Relative growth of the singular value at which the iteration has come to rest."""
_U = "parametrizations.weight.0._u"
_PLAIN = "normalization without statistics"
_SPARSE = 1_000_000
"""Numbers up to which a sparse tensor is made dense."""


def layers_of(content: Mapping[str, object]) -> tuple[list[Layer], list[Malformed]]:
    """Every normalization that shows in a state, and what is no statistics at all.

    What is no tensor is passed over: quantized and custom modules keep settings in their state.
    """
    state = {name: value for name, value in content.items() if isinstance(value, Tensor)}
    found = [_tracking(state, fqn) for fqn in _owners(state) if _is_tracking(state, fqn)]
    found += [
        Layer(fqn, _PLAIN, weight_dtype=_dtype(state[_join(fqn, "weight")]))
        for fqn in _names(state, "weight")
        if _is_plain_norm(state, fqn)
    ]
    found += [_spectral_layer(*each) for each in _spectral(state)]
    layers = [each for each in found if isinstance(each, Layer)]
    return layers, [each for each in found if isinstance(each, Malformed)]


def _tracking(state: Mapping[str, Tensor], fqn: str) -> Layer | Malformed:
    try:
        statistics = _statistics(state, fqn)
    except _MalformedError as error:
        return Malformed(fqn, error.reason)
    weight = _dtype(state.get(_join(fqn, "weight")))
    return Layer(fqn, "BatchNorm", Family.OTHER, weight, statistics)


def _spectral_layer(fqn: str, weight: Tensor, u: Tensor, v: Tensor | None) -> Layer | Malformed:
    try:
        facts = spectral_facts(weight, u, v)
        return Layer(fqn, "SpectralNorm", Family.SPECTRAL, spectral=facts)
    except _MalformedError as error:
        return Malformed(fqn, error.reason)


class _MalformedError(Exception):
    """A tensor is not what its name says."""

    def __init__(self, reason: Message) -> None:
        super().__init__(reason)
        self.reason = reason


def _join(fqn: str, leaf: str) -> str:
    return f"{fqn}.{leaf}" if fqn else leaf


def _names(state: Mapping[str, Tensor], leaf: str) -> Iterator[str]:
    """What owns a tensor of this name."""
    ending = f".{leaf}"
    for name in state:
        if name.endswith(ending) or name == leaf:
            yield name[: -len(leaf)].removesuffix(".")


def _owners(state: Mapping[str, Tensor]) -> Iterator[str]:
    """What owns running statistics, or a part of them; each once."""
    parts = ("running_mean", "running_var")
    yield from dict.fromkeys(fqn for part in parts for fqn in _names(state, part))


def _is_tracking(state: Mapping[str, Tensor], fqn: str) -> bool:
    """Both statistics, or one and the counter that only normalizations of torch have."""
    mean, var, counter = (
        _join(fqn, leaf) in state for leaf in ("running_mean", "running_var", "num_batches_tracked")
    )
    return (mean and var) or ((mean or var) and counter)


def _is_plain_norm(state: Mapping[str, Tensor], fqn: str) -> bool:
    """A weight of one axis without running statistics: LayerNorm, GroupNorm, RMSNorm, a scale."""
    weight = state[_join(fqn, "weight")]
    return (
        not torch.nn.parameter.is_lazy(weight)
        and weight.dim() == 1
        and weight.numel() > 1  # one number is a PReLU's, or a scale
        and weight.is_floating_point()
        and _join(fqn, "running_mean") not in state
    )


def _dtype(tensor: Tensor | None) -> str:
    return "" if tensor is None else str(tensor.dtype).removeprefix("torch.")


def _statistics(state: Mapping[str, Tensor], fqn: str) -> Statistics:
    mean, var = state.get(_join(fqn, "running_mean")), state.get(_join(fqn, "running_var"))
    if mean is None or var is None:
        raise _MalformedError(say("it has only one of running mean and running variance"))
    if torch.nn.parameter.is_lazy(mean) or torch.nn.parameter.is_lazy(var):
        raise _MalformedError(say("it has no shape yet: it is lazy, and no batch has come"))
    if mean.shape != var.shape or not mean.numel():
        raise _MalformedError(
            say(
                "its running mean has shape {mean} and its running variance {var}",
                mean=tuple(mean.shape),
                var=tuple(var.shape),
            )
        )
    for leaf in ("weight", "bias"):
        other = state.get(_join(fqn, leaf))
        if other is not None and mean.dim() == 1 and other.shape != mean.shape:
            raise _MalformedError(
                say(
                    "its running mean has shape {mean} and its {leaf} {other}",
                    mean=tuple(mean.shape),
                    leaf=leaf,
                    other=tuple(other.shape),
                )
            )
    counter = state.get(_join(fqn, "num_batches_tracked"))
    batches = None if counter is None else _numbers(counter)
    if batches is not None and (batches.size != 1 or not np.isfinite(batches).all()):
        raise _MalformedError(say("its counter of batches is no single number"))
    return Statistics(
        np.ravel(_numbers(mean)),
        np.ravel(_numbers(var)),
        _dtype(var),
        None if batches is None else int(batches.item()),
    )


def _numbers(tensor: Tensor) -> Array:
    """In float64 on the host."""
    if tensor.is_complex():
        raise _MalformedError(say("its numbers are complex"))
    if tensor.numel() > _held(tensor):
        raise _MalformedError(
            say(
                "it claims {claimed:,} numbers where {held:,} are stored",
                claimed=tensor.numel(),
                held=_held(tensor),
            )
        )
    try:
        return array(tensor.detach().to_dense().to("cpu").double().numpy())
    except Exception as error:  # a tensor without data, quantized, of a foreign device
        raise _MalformedError(
            say("its numbers cannot be read ({error})", error=type(error).__name__)
        ) from error


def _held(tensor: Tensor) -> int:
    """Numbers that are stored; views may repeat them, and a sparse tensor claim any."""
    if tensor.layout is not torch.strided:
        return max(int(tensor.numel()), 0) if tensor.numel() <= _SPARSE else 0
    if tensor.device.type == "meta":
        return tensor.numel()  # of which none can be read, which is told as such
    return tensor.untyped_storage().nbytes() // max(tensor.element_size(), 1)


# -- spectral normalization -----------------------------------------------------------------------


def _spectral(state: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor, Tensor, Tensor | None]]:
    """Name, weight, u and v, as torch's parametrization and its older form keep them."""
    for name, u in state.items():
        if name == _U or name.endswith(f".{_U}"):
            fqn = name.removesuffix(_U).removesuffix(".")
            weight = state.get(_join(fqn, "parametrizations.weight.original"))
            v = state.get(_join(fqn, "parametrizations.weight.0._v"))
        elif name == "weight_u" or name.endswith(".weight_u"):
            fqn = name.removesuffix("weight_u").removesuffix(".")
            weight, v = state.get(_join(fqn, "weight_orig")), state.get(_join(fqn, "weight_v"))
        else:
            continue
        if weight is not None:
            yield fqn, weight, u, v


def spectral_facts(weight: Tensor, u: Tensor, v: Tensor | None) -> Spectral:
    """The vectors against the weight, as torch unfolds it: one axis against all others.

    The axis is not kept: it is the one that both vectors fit, of several the one they explain best
    (0 for all but transposed convolutions).
    """
    kernel, left = _numbers(weight), np.ravel(_numbers(u))
    right = None if v is None else np.ravel(_numbers(v))
    fitting = [m for m in _unfoldings(kernel) if _fits(m, left, right)]
    if not fitting:
        raise _MalformedError(say("its spectral vectors do not fit its weight"))
    with np.errstate(all="ignore"):  # what overflows is not finite, and told as such
        found = [_against(matrix, left, right) for matrix in fitting]
    return max(found, key=lambda facts: facts.estimate / facts.sigma if facts.sigma else 0.0)


def _unfoldings(kernel: Array) -> Iterator[Array]:
    for axis in range(min(kernel.ndim, 2)):
        front = np.moveaxis(kernel, axis, 0)
        yield np.reshape(front, (front.shape[0], -1 if kernel.size else 0))


def _fits(matrix: Array, left: Array, right: Array | None) -> bool:
    rows, columns = matrix.shape
    return bool(matrix.size) and left.size == rows and (right is None or right.size == columns)


def _against(matrix: Array, left: Array, given: Array | None) -> Spectral:
    right = _unit(left @ matrix) if given is None else given
    return Spectral(
        float(np.linalg.norm(left)),
        None if given is None else float(np.linalg.norm(right)),
        float(left @ matrix @ right),
        _greatest(matrix, right),
    )


def _greatest(matrix: Array, start: Array) -> float:
    """The greatest singular value; NaN where the matrix is not finite."""
    size = float(np.max(np.abs(matrix)))
    if not np.isfinite(size):
        return float("nan")
    return size * _greatest_of(matrix / size, start) if size else 0.0


def _greatest_of(matrix: Array, start: Array) -> float:
    if min(matrix.shape) <= _EXACT:
        square = np.matmul(_broad(matrix), np.transpose(_broad(matrix)))
        return float(np.sqrt(max(np.linalg.eigvalsh(square)[-1], 0.0)))
    v = _unit(np.where(np.isfinite(start), start, 0.0) + 1e-3 * _noise(start.size))
    before = 0.0
    for _ in range(_ITERATIONS):
        left = matrix @ v
        now = float(np.linalg.norm(left))
        if now <= before * (1 + _STILL):
            break
        before, v = now, _unit(left @ matrix)
    return before


def _broad(matrix: Array) -> Array:
    return matrix if matrix.shape[0] <= matrix.shape[1] else np.transpose(matrix)


def _noise(size: int) -> Array:
    """So that no start lies exactly across the singular vector."""
    return array(np.random.default_rng(0).standard_normal(size) / max(size, 1) ** 0.5)


def _unit(vector: Array) -> Array:
    return vector / max(float(np.linalg.norm(vector)), 1e-300)
