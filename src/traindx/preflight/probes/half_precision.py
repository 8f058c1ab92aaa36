"""Probe: what a training in half precision loses, layer by layer, beside a shadow in float64."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd  # pyright: ignore[reportPrivateUsage]

from traindx.messages import say
from traindx.nested import tensors
from traindx.preflight.case import Case, DoesNotApplyError, Replayed
from traindx.preflight.comparing import apart, seeded
from traindx.preflight.probe import STEP, observed, probe
from traindx.records import Item, Scalar, Site

_HALVES = (torch.float16, torch.bfloat16)
_SAMPLE = 4096
"""Elements of an output that are compared."""
_FLUSHABLE = 1e-3
"""Gradients under this may be sums of some ten thousand that float16 has flushed."""
_OTHER = 0.5
"""Change (RMS over RMS) from which on the shadow is another model's: it drew other numbers."""


@probe(
    needs=("loss",),
    writes=("probe.fp16_flushed", "probe.fp16_lost", "probe.half_nonfinite", "probe.half_error"),
    passes=4.0,
)
def half_precision(case: Case) -> Iterator[Item]:
    """What half precision flushes to zero, and what it cannot hold, beside a wide shadow."""
    dtype = _half(case)
    if dtype is None:
        raise DoesNotApplyError(say("nothing is computed in half precision"))
    for module in case.model.modules():
        if isinstance(module, _DropoutNd):  # it would drop others in the shadow
            module.eval()
    scale = _scale(case)
    shadow = _passed(case.double(), 1.0)
    half = _passed(case, scale)
    finite = bool(torch.isfinite(half.loss))
    if finite and apart(shadow.loss, half.loss) > _OTHER:
        raise DoesNotApplyError(say("the shadow in float64 has another loss: it is random"))
    yield from _outputs(case, half, shadow)
    yield from _gradients(case, half, shadow, scale)
    yield observed(
        "half-precision", Site(case.name), dtype=str(dtype).removeprefix("torch."), scale=scale
    )


def _half(case: Case) -> torch.dtype | None:
    """The short type that the training computes in; None if it does not."""
    regions = list(case.autocast)
    if case.score is not None:
        regions += [region for call in case.score.score.calls for region in call.autocast]
    used = [dtype for _, dtype in regions] + [param.dtype for param in case.model.parameters()]
    return next((dtype for dtype in used if dtype in _HALVES), None)


def _scale(case: Case) -> float:
    """What a GradScaler multiplies the loss by; 1 without."""
    found = case.loss_found
    return found.score.scale if isinstance(found, Replayed) else 1.0


# -- a pass ----------------------------------------------------------------------------------------


class _Output(NamedTuple):
    """What is kept of a module's output.

    Attributes:
        kind: The module's class.
        sample: Some of its elements.
        nonfinite: Elements that are not finite.
        largest: The largest of the others.
    """

    kind: str
    sample: Tensor
    nonfinite: int
    largest: float


class _Pass(NamedTuple):
    """What is kept of a pass forward and backward."""

    loss: Tensor
    outputs: dict[str, _Output]
    gradients: dict[str, Tensor]


def _passed(case: Case, scale: float) -> _Pass:
    seeded(0)
    outputs: dict[str, _Output] = {}
    handles: list[Any] = []
    named = cast("Iterable[tuple[str, Any]]", cast(Any, case.model).named_modules())
    try:
        for fqn, module in named:
            if not [*module.children()]:
                handles.append(module.register_forward_hook(_noting(fqn, outputs)))
        loss = case.loss()
    finally:
        for handle in handles:
            handle.remove()
    params = case.trainable()
    torch.autograd.backward(loss * scale)
    found = {fqn: param.grad.detach() for fqn, param in params if param.grad is not None}
    dense = {fqn: grad for fqn, grad in found.items() if not grad.is_sparse}
    return _Pass(loss.detach(), outputs, dense)


def _noting(fqn: str, outputs: dict[str, _Output]) -> Any:
    def left(module: nn.Module, _args: object, output: object) -> None:
        made = next(tensors(output), None)
        if fqn in outputs or made is None or not made.is_floating_point():
            return
        flat = made.detach().reshape(-1)
        step = max(1, flat.numel() // _SAMPLE)
        finite = torch.isfinite(flat)
        nonfinite = int((~finite).sum())
        largest = float(torch.where(finite, flat, 0).abs().max()) if flat.numel() else 0.0
        kind = type(module).__name__
        outputs[fqn] = _Output(kind, flat[::step].double(), nonfinite, largest)

    return left


# -- side by side ----------------------------------------------------------------------------------


def _outputs(case: Case, half: _Pass, shadow: _Pass) -> Iterator[Item]:
    """In the order of the calls; the first that cannot hold its numbers is told apart."""
    told = False
    for fqn, own in half.outputs.items():
        true = shadow.outputs.get(fqn)
        if true is None or true.sample.shape != own.sample.shape:
            continue
        site, excess = Site(case.name, fqn), own.nonfinite - true.nonfinite
        yield Scalar(STEP, "probe.half_nonfinite", max(excess, 0), site)
        error = apart(true.sample, own.sample)
        if math.isfinite(error):
            yield Scalar(STEP, "probe.half_error", error, site)
        if excess > 0 and not told:
            told = True
            yield observed("half-precision", site, kind=own.kind, largest=true.largest)


def _gradients(case: Case, half: _Pass, shadow: _Pass, scale: float) -> Iterator[Item]:
    for fqn, true in shadow.gradients.items():
        own = half.gradients.get(fqn)
        whole = _norm(true)
        if own is None or not whole or not math.isfinite(whole):
            continue
        flushed = (own == 0) & (true != 0) & (true.abs() * scale < _FLUSHABLE)
        there = int((true != 0).sum())
        site = Site(case.name, fqn)
        yield Scalar(STEP, "probe.fp16_flushed", int(flushed.sum()) / there, site)
        yield Scalar(STEP, "probe.fp16_lost", _norm(true[flushed]) / whole, site)


def _norm(tensor: Tensor) -> float:
    return float(tensor.double().square().sum().sqrt())
