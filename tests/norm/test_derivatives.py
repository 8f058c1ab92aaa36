"""Closed forms against torch's autograd, first and second order; NumPy against torch arrays."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tests.norm.cases import CASES, Case, eighths
from traindx.norm.choices import GroupOrder
from traindx.norm.layers import layer_norm
from traindx.norm.presets import preset
from traindx.norm.reference import (
    Gradients,
    PowerVectors,
    RunningStats,
    backward,
    double_backward,
    evaluate,
    forward,
    power_iterated,
)
from traindx.norm.spec import NormSpec

FORWARD, BACKWARD = 1e-12, 1e-10
X = np.random.default_rng(0).normal(0.5, 2.0, (4, 6, 3, 5))
CHANNELS = np.random.default_rng(1).normal(size=(2, 6))
LAST = np.random.default_rng(2).normal(size=(2, 3, 5))
STATS = RunningStats(CHANNELS[0], np.abs(CHANNELS[1]) + 0.5)
V, U = eighths(5, 90), eighths(6, 4)

Layer = Callable[[Tensor, Any, Any], Tensor]


@dataclass(frozen=True)
class Twin:
    """A layer of ours and one of torch's; what is None is left out."""

    spec: NormSpec
    torch: Layer
    weight: np.ndarray | None = None
    bias: np.ndarray | None = None
    running: RunningStats | PowerVectors | None = None
    training: bool = True


def across(values: Tensor | np.ndarray) -> Tensor:
    """Channels broadcast against a batch of images."""
    return torch.as_tensor(values)[:, None, None]


def interleaved(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    rolled = x.reshape(4, 2, 3, 3, 5).transpose(1, 2).reshape(4, 6, 3, 5)
    y = functional.group_norm(rolled, 3).reshape(4, 3, 2, 3, 5).transpose(1, 2)
    return y.reshape(4, 6, 3, 5) * across(w) + across(b)


def mean_variance(x: Tensor, *_: Any) -> Tensor:
    axes = (0, 2, 3)
    std = x.var(axes, keepdim=True, correction=0).sqrt()
    return (x - x.mean(axes, keepdim=True)) / (std + 1e-9)


def filter_response(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return x / (x.square().mean((2, 3), keepdim=True) + 1e-6).sqrt() * across(w) + across(b)


def weight_norm(v: Tensor, g: Tensor, _: Any) -> Tensor:
    # torch's own fused weight_norm does not pass torch's gradgradcheck, so it is written out.
    return v / v.flatten(1).norm(dim=1)[:, None, None, None] * g[:, None, None, None]


def spectral_norm(w: Tensor, *_: Any) -> Tensor:
    matrix = w.flatten(1)
    with torch.no_grad():
        u = functional.normalize(matrix @ torch.tensor(V), dim=0)
        v = functional.normalize(matrix.T @ u, dim=0)
    return w / (u @ matrix @ v)


def batch_renorm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    axes, old = (0, 2, 3), across(np.sqrt(STATS.var + 1e-5))
    mean = x.mean(axes, keepdim=True)
    std = (x.var(axes, keepdim=True, correction=0) + 1e-5).sqrt()
    r = (std / old).clamp(1 / 3, 3).detach()
    d = ((mean - across(STATS.mean)) / old).clamp(-5, 5).detach()
    return ((x - mean) / std * r + d) * across(w) + across(b)


def ghost(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    halves = x.split(2)
    return torch.cat([functional.batch_norm(half, None, None, w, b, True) for half in halves])


def evaluated(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    mean, var = torch.tensor(STATS.mean), torch.tensor(STATS.var)
    return functional.batch_norm(x, mean, var, w, b)


TWINS: dict[str, Twin] = {
    "BatchNorm": Twin(
        preset("torch.BatchNorm2d"),
        lambda x, w, b: functional.batch_norm(x, None, None, w, b, True),
        *CHANNELS,
    ),
    "BatchNorm in evaluation": Twin(
        preset("torch.BatchNorm2d"), evaluated, *CHANNELS, running=STATS, training=False
    ),
    "LayerNorm": Twin(
        layer_norm(normalized_ndim=2),
        lambda x, w, b: functional.layer_norm(x, (3, 5), w, b),
        *LAST,
    ),
    "GroupNorm": Twin(
        preset("torch.GroupNorm", num_groups=3),
        lambda x, w, b: functional.group_norm(x, 3, w, b),
        *CHANNELS,
    ),
    "GroupNorm, interleaved": Twin(
        preset("torch.GroupNorm", num_groups=3, order=GroupOrder.INTERLEAVED),
        interleaved,
        *CHANNELS,
    ),
    "InstanceNorm": Twin(
        preset("torch.InstanceNorm2d"),
        lambda x, w, b: functional.instance_norm(x, weight=w, bias=b),
        *CHANNELS,
    ),
    "RMSNorm": Twin(
        preset("torch.RMSNorm", normalized_ndim=2),
        lambda x, w, b: functional.rms_norm(x, (3, 5), w),
        LAST[0],
    ),
    "RMSNorm of Gemma": Twin(
        preset("transformers.GemmaRMSNorm", normalized_ndim=2),
        lambda x, w, b: functional.rms_norm(x, (3, 5), 1 + w, 1e-6),
        LAST[0],
    ),
    **{
        f"LocalResponseNorm of {size}": Twin(
            preset("torch.LocalResponseNorm", size=size, alpha=0.7),
            lambda x, w, b, size=size: functional.local_response_norm(x, size, alpha=0.7),
        )
        for size in range(1, 8)
    },
    "MeanVarianceNormalization": Twin(preset("onnx.MeanVarianceNormalization"), mean_variance),
    "FilterResponseNorm": Twin(preset("paper.FilterResponseNorm"), filter_response, *CHANNELS),
    "normalize": Twin(preset("torch.normalize"), lambda x, w, b: functional.normalize(x)),
    "normalize by magnitudes": Twin(
        preset("torch.normalize", p=1), lambda x, w, b: functional.normalize(x, p=1)
    ),
    "WeightNorm": Twin(preset("torch.weight_norm"), weight_norm, CHANNELS[0, :4]),
    "SpectralNorm": Twin(preset("torch.spectral_norm"), spectral_norm, running=PowerVectors(U, V)),
    "Batch Renorm": Twin(preset("paper.BatchRenorm"), batch_renorm, *CHANNELS, running=STATS),
    "Ghost BatchNorm": Twin(preset("paper.GhostBatchNorm", virtual_batch_size=2), ghost, *CHANNELS),
}


def apart(ours: Any, theirs: Tensor) -> float:
    return float(np.max(np.abs(np.asarray(ours) - theirs.detach().numpy())))


def leaf(values: np.ndarray) -> Tensor:
    return torch.tensor(values, requires_grad=True)


@pytest.mark.parametrize("name", TWINS)
def test_forward_backward_and_double_backward_agree_with_autograd(name: str) -> None:
    twin = TWINS[name]
    given = [None if v is None else leaf(v) for v in (X, twin.weight, twin.bias)]
    leaves = [tensor for tensor in given if tensor is not None]
    y = twin.torch(*given)  # pyright: ignore[reportArgumentType]
    dy = leaf(np.random.default_rng(7).normal(size=y.shape))
    first = torch.autograd.grad(y, leaves, dy, create_graph=True)
    drawn = [np.random.default_rng(8).normal(size=g.shape) for g in first]
    inner = sum((g * torch.tensor(h)).sum() for g, h in zip(first, drawn, strict=True))
    second = torch.autograd.grad(inner, [dy, *leaves[:2]], allow_unused=True)  # pyright: ignore

    assert apart(output(twin), y) <= FORWARD
    state = twin.running
    if isinstance(state, PowerVectors):
        state = power_iterated(twin.spec, state, X)
    rest: dict[str, Any] = {"running": state, "training": twin.training}
    ours = backward(twin.spec, dy, X, twin.weight, **rest)
    for mine, theirs in zip((ours.x, ours.weight, ours.bias), first, strict=False):
        assert apart(mine, theirs) <= BACKWARD
    twice = double_backward(twin.spec, Gradients(*drawn), dy, X, twin.weight, **rest)
    found: list[Any] = [twice.dy, twice.x, twice.weight]
    for mine, theirs in zip(found, second, strict=False):
        expected = torch.zeros(np.shape(mine)) if theirs is None else theirs
        assert apart(mine, expected) <= BACKWARD


def output(twin: Twin) -> np.ndarray:
    if twin.training:
        return forward(twin.spec, X, twin.weight, twin.bias, running=twin.running)
    assert twin.running is not None
    return evaluate(twin.spec, twin.running, X, twin.weight, twin.bias)


class Ours(torch.autograd.Function):
    """Our forward with our backward, whose derivative is our double backward."""

    @staticmethod
    def forward(ctx: Any, spec: NormSpec, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.spec = spec
        ctx.save_for_backward(x, weight)
        return forward(spec, x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *dys: Tensor) -> Any:
        return (None, *OursBack.apply(ctx.spec, *dys, *ctx.saved_tensors))


class OursBack(torch.autograd.Function):
    """Our backward as a function of its own."""

    @staticmethod
    def forward(ctx: Any, spec: NormSpec, dy: Tensor, x: Tensor, weight: Tensor) -> Any:
        ctx.spec = spec
        ctx.save_for_backward(dy, x, weight)
        found = backward(spec, dy, x, weight)
        return found.x, found.weight, found.bias

    @staticmethod
    def backward(ctx: Any, *seeds: Tensor) -> Any:
        found = double_backward(ctx.spec, Gradients(*seeds), *ctx.saved_tensors)
        return None, found.dy, found.x, found.weight


@pytest.mark.parametrize("name", ["BatchNorm", "GroupNorm", "FilterResponseNorm"])
def test_gradcheck_and_gradgradcheck_pass_on_our_own_closed_forms(name: str) -> None:
    spec = TWINS[name].spec
    leaves = (leaf(X[:2, :, :2, :1].copy()), *map(leaf, CHANNELS.copy()))

    def call(*given: Tensor) -> Any:
        return Ours.apply(spec, *given)

    assert torch.autograd.gradcheck(call, leaves)
    assert torch.autograd.gradgradcheck(call, leaves)


def as_torch(values: Any) -> Any:
    match values:
        case None:
            return None
        case RunningStats(mean, var, count):
            return RunningStats(torch.tensor(mean), torch.tensor(var), count)
        case PowerVectors(u, v):
            return PowerVectors(torch.tensor(u), torch.tensor(v))
        case _:
            return torch.tensor(values)


@pytest.mark.parametrize("name", CASES)
def test_torch_arrays_take_the_same_way_and_stay_torch_arrays(name: str) -> None:
    case = CASES[name]
    plain, tensors = answers(case), answers(converted(case))
    assert all(isinstance(tensor, Tensor) for tensor in tensors)
    assert all(t.dtype == torch.float64 for t in tensors)
    pairs = zip(plain, tensors, strict=True)
    assert max(apart(ours, theirs) for ours, theirs in pairs) <= FORWARD


def converted(case: Case) -> Any:
    fields = ("x", "weight", "bias", "running", "mask", "dy", "h")
    moved = {key: as_torch(getattr(case, key)) for key in fields}
    return type("Moved", (), {**moved, "spec": case.spec})


def answers(case: Any) -> list[Any]:
    y = forward(case.spec, case.x, case.weight, case.bias, running=case.running, mask=case.mask)
    rest = {"running": case.running, "mask": case.mask}
    once = backward(case.spec, case.dy, case.x, case.weight, **rest)
    twice = double_backward(case.spec, Gradients(case.h), case.dy, case.x, case.weight, **rest)
    return [y, once.x, twice.dy, twice.x]


def test_lists_stay_numpy_and_numpy_parameters_follow_a_torch_input() -> None:
    spec = preset("torch.BatchNorm1d")
    assert isinstance(forward(spec, [[1, 2], [3, 0]]), np.ndarray)
    x = torch.tensor([[1.0, 2.0], [3.0, 0.0]])
    y = forward(spec, x, np.array([2.0, 1.0]), [0, 1])
    assert isinstance(y, Tensor)
    assert y.dtype == torch.float64
