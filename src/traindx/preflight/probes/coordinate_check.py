"""Probe: whether what a step changes in each layer grows with the width of the model.

The coordinate check of maximal-update parametrization (Yang & Hu, "Feature learning in
infinite-width neural networks", 2021; Yang et al. 2022, appendix D.1): the same few steps in
several widths, and the exponent a of RMS(h_t - h_0) ~ width^a for the output h of each layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any, cast

import torch
from torch import Tensor, nn

from traindx.facts import Json
from traindx.messages import say
from traindx.nested import first_tensor
from traindx.preflight.case import Case, DoesNotApplyError, Widths
from traindx.preflight.comparing import run, seeded
from traindx.preflight.losses import Direct
from traindx.preflight.probe import STEP, observed, probe
from traindx.preflight.structures import named_tensors
from traindx.preflight.unregularized import without_dropout
from traindx.records import Item, Scalar, Site

_STEPS = 4
_SEEDS = 3
_SAMPLES = 32
_SHOWN = 200
"""Layers that are told."""
_LEAST = 16
"""Width from which on half of it is tried, too."""
_COST = 4.5
"""What a pass in all three widths costs, in one of the middle width."""


def _passes(case: Case) -> float:
    part = min(1.0, _SAMPLES / (case.batch_size or 1))
    return _SEEDS * (_STEPS + 1) * _COST * part


@probe(
    needs=("widths", "loss", "optimizer"),
    writes=("probe.width_exponent",),
    trains=True,
    passes=_passes,
)
def coordinate_check(case: Case) -> Iterator[Item]:
    """With which power of the width the change of each layer's output in a few steps grows."""
    widths = case.widths
    assert widths is not None, "it is needed"
    half = widths.base // 2 if widths.base >= _LEAST else widths.base
    sizes = [half, 2 * half, 4 * half]
    tried = [[_changes(case, widths, size, seed) for size in sizes] for seed in range(_SEEDS)]
    found: dict[str, list[float]] = {}
    for of_widths in tried:
        for fqn, changes in of_widths[0][0].items():
            others = [one.get(fqn, 0.0) for one, _ in of_widths[1:]]
            if all(math.isfinite(c) and c > 0 for c in (changes, *others)):
                found.setdefault(fqn, []).append(_slope(sizes, [changes, *others]))
    exponents = {fqn: slopes for fqn, slopes in found.items() if len(slopes) == _SEEDS}
    if not exponents:
        raise DoesNotApplyError(say("no layer changes in a few steps in every width"))
    for fqn, slopes in exponents.items():
        yield Scalar(STEP, "probe.width_exponent", fmean(slopes), Site(case.name, fqn))
    least = {fqn: fmean(s) - 2 * stdev(s) / _SEEDS**0.5 for fqn, s in exponents.items()}
    worst = max(least, key=lambda fqn: least[fqn])
    rates = [of_width[1] for of_width in tried[0]]
    yield observed(
        "coordinate-check",
        Site(case.name, worst),
        argument=widths.argument,
        widths=[*sizes],
        steps=_STEPS,
        exponent=fmean(exponents[worst]),
        least=least[worst],
        changes=[fmean(seed[i][0][worst] for seed in tried) for i in range(len(sizes))],
        layers=_rows(exponents, least),
        scaled=any(rate != rates[0] for rate in rates),
        optimizer=type(case.optimizer).__name__,
    )


def _rows(exponents: dict[str, list[float]], least: dict[str, float]) -> list[Json]:
    """Of each layer its exponent, and the least that it may be."""
    return [[fqn, fmean(slopes), least[fqn]] for fqn, slopes in [*exponents.items()][:_SHOWN]]


def _slope(sizes: list[int], changes: list[float]) -> float:
    """Of the logarithms, by least squares."""
    x, y = [math.log(size) for size in sizes], [math.log(change) for change in changes]
    mean_x, mean_y = fmean(x), fmean(y)
    above = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return above / sum((a - mean_x) ** 2 for a in x)


def _changes(
    base: Case, widths: Widths, size: int, seed: int
) -> tuple[dict[str, float], tuple[float, ...]]:
    """How far a few steps move the output of each layer (RMS), and the optimizer's rates."""
    seeded(seed)
    try:
        made = widths.case(size)
    except Exception as error:
        raise DoesNotApplyError(
            say("the model cannot be made with {argument}={size}: {error}",
                argument=widths.argument, size=size, error=f"{type(error).__name__}: {error}")
        ) from error  # fmt: skip
    optimizer = made.optimizer
    if optimizer is None:
        raise DoesNotApplyError(say("no optimizer was found"))
    rates = tuple(float(group.get("lr", 0.0)) for group in optimizer.param_groups)
    made = _few(_on_the_batch_of(base, made))
    without_dropout(made.model)
    before = _outputs(made)
    for _ in range(_STEPS):
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(made.loss())
        optimizer.step()
    after = _outputs(made)
    moved = {
        fqn: float((after[fqn] - output).square().mean().sqrt())
        for fqn, output in before.items()
        if fqn in after and after[fqn].shape == output.shape and output.numel()
    }
    return moved, rates


def _on_the_batch_of(base: Case, made: Case) -> Case:
    """A case with the batch of another: made with other random numbers, it has its own."""
    mine, given = made.loss_found, base.loss_found
    if _shapes(made) != _shapes(base):
        return made
    if isinstance(mine, Direct) and isinstance(given, Direct):
        mine = replace(mine, target=given.target)
    return replace(made, args=base.args, kwargs=base.kwargs, loss_found=mine)


def _few(case: Case) -> Case:
    assert case.optimizer is not None
    try:
        return case.subset(_SAMPLES)
    except DoesNotApplyError:
        return case


def _shapes(case: Case) -> list[tuple[int, ...]]:
    return [tuple(t.shape) for _, t in named_tensors([list(case.args), case.kwargs])]


def _outputs(case: Case) -> dict[str, Tensor]:
    """What each module with weights of its own returns, at its first call."""
    found: dict[str, Tensor] = {}
    handles: list[Any] = []
    named = cast("Iterable[tuple[str, nn.Module]]", cast(Any, case.model).named_modules())
    for fqn, module in named:
        if not any(param.dim() > 1 for param in module.parameters(recurse=False)):
            continue

        def left(_module: object, _args: object, output: object, fqn: str = fqn) -> None:
            made = first_tensor(output)
            if fqn not in found and made is not None and made.is_floating_point():
                found[fqn] = made.detach().double().clone()

        handles.append(cast(Any, module).register_forward_hook(left))
    try:
        run(case)
    finally:
        for handle in handles:
            handle.remove()
    return found
