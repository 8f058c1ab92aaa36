"""torch's own test samples: the inputs its operators and modules are tested with.

The inputs are torch's, and so are the answers: its float64 kernels forward, its autograd backward,
and for some operators a NumPy reference of its own.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db

from tests.norm.oracles.answers import Answer, compared, refused
from traindx.errors import ArgumentError
from traindx.norm.presets import preset
from traindx.norm.reference import RunningStats, backward, evaluate, forward, updated
from traindx.norm.spec import NormSpec
from traindx.norm.torch_layers import spec_of

FORWARD, BACKWARD = 1e-12, 1e-10

Asked = tuple[NormSpec, Any, Any, RunningStats | None, bool]
"""Specification, weight, bias, running statistics, and whether it is training."""


def answers() -> Iterator[Answer]:
    """Ours to every sample of a normalization operator or module."""
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    yield from _operators()
    yield from _modules()


def _operators() -> Iterator[Answer]:
    for op in op_db:
        ask = _ASKED.get(op.name)
        if ask is None:
            continue
        for number, sample in enumerate(op.sample_inputs("cpu", torch.float64)):
            if ask is _batch_norm and sample.input.ndim < 2:
                continue  # of shape (0,): without an axis of channels there is no BatchNorm
            name = f"{op.name} {op.variant_test_name}".strip() + f"[{number}]"
            asked = ask(*sample.args, **sample.kwargs)
            if asked is None:
                continue
            yield from _compared(
                f"torch OpInfo {op.name}", name, asked, sample.input, _called(op, sample)
            )
            if op.ref is not None:
                yield _by_reference(op, sample, name, asked)


def _called(op: Any, sample: Any) -> Callable[[Tensor], Any]:
    def call(x: Tensor) -> Any:
        # Buffers are written to, so every call gets its own.
        args = [a.clone() if isinstance(a, Tensor) else a for a in sample.args]
        kwargs = {k: a.clone() if isinstance(a, Tensor) else a for k, a in sample.kwargs.items()}
        y = op(x, *args, **kwargs)
        return y if isinstance(y, Tensor) else y[0]

    return call


def _by_reference(op: Any, sample: Any, name: str, asked: Asked) -> Answer:
    """Ours beside the NumPy reference that torch keeps for its operator."""
    given = sample.numpy()
    with np.errstate(all="ignore"):
        theirs = op.ref(given.input, *given.args, **given.kwargs)
    theirs = theirs[0] if isinstance(theirs, tuple) else theirs
    source = "torch OpInfo, NumPy references"
    try:
        ours = _output(asked, sample.input.numpy())
    except ArgumentError:
        return refused(source, name, theirs)
    return compared(source, name, [(ours, theirs)], rtol=FORWARD, atol=FORWARD)


def _compared(
    source: str, name: str, asked: Asked, x: Tensor, call: Callable[[Tensor], Tensor]
) -> Iterator[Answer]:
    moving = x.detach().clone().requires_grad_()
    theirs = call(moving)
    dy = torch.randn(theirs.shape, dtype=theirs.dtype)
    (dx,) = torch.autograd.grad(theirs, moving, dy)
    spec, weight, _, running, training = asked
    try:
        ours = _output(asked, x.numpy())
        state = None if training else running
        pulled = backward(spec, dy, x.numpy(), weight, running=state, training=training).x
    except ArgumentError:
        yield refused(f"{source}, forward", name, theirs.detach())
        return
    pair = [(ours, theirs.detach())]
    yield compared(f"{source}, forward", name, pair, rtol=FORWARD, atol=FORWARD)
    yield compared(f"{source}, backward", name, [(pulled, dx)], rtol=BACKWARD, atol=BACKWARD)


def _output(asked: Asked, x: Any) -> Any:
    spec, weight, bias, running, training = asked
    if training or running is None:
        return forward(spec, x, weight, bias)
    return evaluate(spec, running, x, weight, bias)


def _stats(mean: Tensor | None, var: Tensor | None) -> RunningStats | None:
    return None if mean is None or var is None else RunningStats(mean.numpy(), var.numpy())


def _batch_norm(
    mean: Any,
    var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Asked:
    # A negative momentum, which we refuse, is not what these outputs depend on.
    return preset("torch.BatchNorm2d", eps=eps), weight, bias, _stats(mean, var), training


def _native_batch_norm(weight: Any, bias: Any, *rest: Any) -> Asked:
    mean, var, training, momentum, eps = rest if len(rest) == 5 else (None, None, *rest)
    return _batch_norm(mean, var, weight, bias, training, momentum, eps)


def _batch_norm_with_update(
    weight: Any, bias: Any, mean: Any, var: Any, momentum: float, eps: float
) -> Asked:
    return _batch_norm(mean, var, weight, bias, True, momentum, eps)


def _instance_norm(weight: Any = None, bias: Any = None, eps: float = 1e-5, **_: Any) -> Asked:
    return preset("torch.InstanceNorm2d", eps=eps), weight, bias, None, True


def _layer_norm(shape: Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5):
    return preset("torch.LayerNorm", normalized_ndim=len(shape), eps=eps), weight, bias, None, True


def _rms_norm(shape: Sequence[int], weight: Any = None, eps: float | None = None) -> Asked:
    return preset("torch.RMSNorm", normalized_ndim=len(shape), eps=eps), weight, None, None, True


def _group_norm(groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Asked:
    return preset("torch.GroupNorm", num_groups=groups, eps=eps), weight, bias, None, True


def _native_group_norm(
    weight: Any, bias: Any, n: int, c: int, hw: int, groups: int, eps: float
) -> Asked:
    return _group_norm(groups, weight, bias, eps)


def _lrn(size: int, **chosen: float) -> Asked:
    return preset("torch.LocalResponseNorm", size=size, **chosen), None, None, None, True


def _normalize(p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Asked | None:
    if p not in {1.0, 2.0}:
        return None
    return preset("torch.normalize", p=int(p), axis=dim, eps=eps), None, None, None, True


_ASKED: dict[str, Callable[..., Asked | None]] = {
    "nn.functional.batch_norm": _batch_norm,
    "native_batch_norm": _native_batch_norm,
    "_native_batch_norm_legit": _native_batch_norm,
    "_batch_norm_with_update": _batch_norm_with_update,
    "nn.functional.instance_norm": _instance_norm,
    "nn.functional.layer_norm": _layer_norm,
    "native_layer_norm": _layer_norm,
    "nn.functional.rms_norm": _rms_norm,
    "nn.functional.group_norm": _group_norm,
    "native_group_norm": _native_group_norm,
    "nn.functional.local_response_norm": _lrn,
    "nn.functional.normalize": _normalize,
}


def _modules() -> Iterator[Answer]:
    for info in module_db:
        kind = info.module_cls.__name__
        if not kind.rstrip("123d").endswith("Norm") or kind.startswith(("Lazy", "Cross")):
            continue
        for training in (True, False):
            made = info.module_inputs_func(
                info, device="cpu", dtype=torch.float64, requires_grad=False, training=training
            )
            for number, sample in enumerate(made):
                constructed = sample.constructor_input
                layer = (
                    info.module_cls(*constructed.args, **constructed.kwargs, dtype=torch.float64)
                    if kind != "LocalResponseNorm"
                    else info.module_cls(*constructed.args)
                )
                name = f"{kind}{'' if training else '.eval'}[{number}]"
                yield from _module(name, layer.train(training), sample.forward_input.args[0])


def _module(name: str, layer: Any, x: Tensor) -> Iterator[Answer]:
    """A layer's output and gradient, and its running statistics afterwards."""
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    spec, before = spec_of(layer), copy.deepcopy(layer)
    weight, bias = (_parameter(layer, key) for key in ("weight", "bias"))
    mean, var = (getattr(before, f"running_{key}", None) for key in ("mean", "var"))
    running = _stats(mean, var)
    batched = x if not _is_single(layer, x) else x[None]
    training = layer.training or running is None
    asked = (spec, weight, bias, running, training)
    yield from _compared("torch ModuleInfo", name, asked, batched, layer)
    if layer.training and running is not None:
        after = updated(spec, running, batched.numpy())
        pairs = [(after.mean, layer.running_mean), (after.var, layer.running_var)]
        pairs.append((after.num_batches_tracked, layer.num_batches_tracked))
        yield compared("torch ModuleInfo, running", name, pairs, rtol=FORWARD, atol=FORWARD)


def _parameter(layer: Any, key: str) -> Any:
    found = getattr(layer, key, None)
    return None if found is None else found.detach().numpy()


def _is_single(layer: Any, x: Tensor) -> bool:
    """Whether InstanceNorm was given one sample without its batch axis."""
    name = type(layer).__name__
    return name.startswith("InstanceNorm") and x.ndim == int(name[-2]) + 1
