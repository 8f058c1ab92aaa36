"""Probe: autograd's gradients beside differences of the loss, in float64.

Along a direction v the derivative of the loss is g·v by autograd, and
(L(p + hv) - L(p - hv)) / 2h by differences. v has unit RMS: for all parameters at once, then for
each by itself. Where they disagree, smaller steps decide: a kink (of a ReLU) that lies between
drops out, a wrong gradient stays wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd  # pyright: ignore[reportPrivateUsage]

from traindx.messages import say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.comparing import without_graph
from traindx.preflight.expected import iterates
from traindx.preflight.handwritten import replaced, written_by_hand
from traindx.preflight.probe import STEP, observed, probe
from traindx.preflight.structures import named_tensors
from traindx.preflight.tape import Tape
from traindx.preflight.unregularized import Adam, seeded
from traindx.records import Item, Scalar, Site

_SAMPLES = 3
_STEPS = (1e-5, 1e-6, 1e-7)
_AGREES = 1e-6
"""Relative error under which nothing smaller is tried."""
_ROUNDING = 4e-15
"""Of the loss: how far it may be off; over the step it is the error of a difference."""
_TOLD = 100
"""Times that error from which on a derivative can be compared."""
_DOUBTFUL = 1e-4
"""Relative error from which on kinks are looked for."""
_SETTLED = 0.1
"""Of what they are off by: how far the last two differences may be apart."""
_DIRECTIONS = 3
_JITTER = 0.01
"""Of its RMS: how far each parameter is moved first, off points where kinks meet, as a zero."""
_BURN_IN = 3
_WIDE = 0.8
"""What a pass in float64 costs, of one with backward in float32; most are without."""
_WIDE_CONVOLVED = 2.4
"""The same of convolutions, for which there are fewer kernels in float64."""
_FIXED, _ELEMENT = 0.04, 2.5e-7
"""Seconds of all else, and for each element of the parameters."""
_CUT = ("detach", "round", "sign", "floor", "ceil", "argmax", "argmin", "bucketize")
"""Functions that programs put in the gradient's way on purpose."""


def _few(case: Case) -> float:
    pairs = len(case.trainable()) + _DIRECTIONS
    wide = _WIDE_CONVOLVED if any(isinstance(m, _ConvNd) for m in case.model.modules()) else _WIDE
    return wide * (pairs + _BURN_IN + 4)


def _seconds(case: Case) -> float:
    return _FIXED + _ELEMENT * sum(param.numel() for _, param in case.trainable())


@probe(
    needs=("loss", "batch"),
    writes=("probe.gradient_error", "probe.parameter_gradient_error"),
    passes=0.0,
    few=_few,
    seconds=_seconds,
)
def gradient_check(case: Case) -> Iterator[Item]:
    """Autograd's gradients beside centred differences of the loss, in float64, on 3 samples."""
    wide = case.subset(_SAMPLES).double()
    _must_be_wide(wide)
    for module in filter(iterates, wide.model.modules()):
        module.eval()  # whose vectors move with the weight, and are constants to autograd
    cuts = _cuts(wide)
    named = [(fqn, param) for fqn, param in wide.model.named_parameters() if param.requires_grad]
    if not named:
        raise DoesNotApplyError(say("no parameter takes gradients"))
    params = [param for _, param in named]
    _burn_in(wide, params)
    checking = _Checking(wide, params)
    every = [checking.along(params, seed) for seed in range(_DIRECTIONS)]
    by_name = {fqn: checking.along([p], i) for i, (fqn, p) in enumerate(named)}
    known = [one for one in every if one.error is not None]
    if not known and all(one.error is None for one in by_name.values()):
        raise DoesNotApplyError(say("every gradient is too small to compare"))
    site = Site(case.name)
    functions, meant = _custom(wide)
    yield Scalar(
        STEP, "probe.gradient_error", max((o.error or 0.0 for o in known), default=0), site
    )
    for fqn, one in by_name.items():
        if one.error is not None:
            yield Scalar(STEP, "probe.parameter_gradient_error", one.error, Site(case.name, fqn))
    yield observed(
        "gradient-check",
        site,
        parameters=len(named),
        too_small=sum(one.error is None for one in by_name.values()),
        kinks=sum(one.kink for one in (*every, *by_name.values())),
        cuts=[*cuts, *meant],
        functions=[*functions],
    )


@dataclass(frozen=True, slots=True)
class _Compared:
    """The two derivatives along one direction.

    Attributes:
        error: |a - n| / max(|a|, |n|); None if both are too small to compare.
        kink: Whether a smaller step was needed to see that they agree.
    """

    error: float | None
    kink: bool


class _Checking:
    """A loss as a function of its parameters, and its gradient where they are."""

    def __init__(self, case: Case, params: Sequence[Tensor]) -> None:
        self._case = case
        self._loss, gradients = _with_gradients(case, params)
        self._gradients = {id(param): g for param, g in zip(params, gradients, strict=True)}
        self._still = _rows_without_gradient(case.model)

    def along(self, params: Sequence[Tensor], seed: int) -> _Compared:
        """The derivatives along a random direction of these parameters."""
        generator = torch.Generator().manual_seed(seed)
        ways = [_direction(param, generator) for param in params]
        for param, way in zip(params, ways, strict=True):
            if id(param) in self._still:
                way[self._still[id(param)]] = 0
        analytic = sum(
            float((gradient * way).sum())
            for param, way in zip(params, ways, strict=True)
            if (gradient := self._gradients[id(param)]) is not None
        )
        numerics: list[float] = []
        errors: list[float] = []
        for step in _STEPS:
            numeric = self._difference(params, ways, step)
            greatest = max(abs(analytic), abs(numeric))
            rounding = _ROUNDING * max(1.0, abs(self._loss)) / step
            if not greatest >= _TOLD * rounding:
                break
            numerics.append(numeric)
            errors.append(max(0.0, abs(analytic - numeric) - rounding) / greatest)
            if errors[-1] < _AGREES:
                break
        return _judged(analytic, numerics, errors)

    def _difference(self, params: Sequence[Tensor], ways: Sequence[Tensor], step: float) -> float:
        values: list[float] = []
        for sign in (1, -1):
            with _moved(params, ways, sign * step):
                values.append(_value(self._case))
        return (values[0] - values[1]) / (2 * step)


def _judged(analytic: float, numerics: Sequence[float], errors: Sequence[float]) -> _Compared:
    """What differences with ever smaller steps say of one derivative."""
    if not errors:
        return _Compared(None, False)
    best = min(errors)
    if best < _DOUBTFUL:
        return _Compared(best, errors[0] >= _DOUBTFUL)
    # A wrong gradient is off from something; differences that do not settle lie across kinks.
    apart = abs(numerics[-1] - numerics[-2]) if len(numerics) > 1 else float("inf")
    if apart > _SETTLED * abs(analytic - numerics[-1]):
        return _Compared(None, True)
    return _Compared(best, False)


@contextmanager
def _moved(params: Sequence[Tensor], ways: Sequence[Tensor], step: float) -> Generator[None]:
    before = [param.detach().clone() for param in params]
    with torch.no_grad():
        for param, way in zip(params, ways, strict=True):
            param.add_(way, alpha=step)
    try:
        yield
    finally:
        with torch.no_grad():
            for param, was in zip(params, before, strict=True):
                param.copy_(was)


def _direction(param: Tensor, generator: torch.Generator) -> Tensor:
    way = torch.randn(param.shape, generator=generator, dtype=torch.float64).to(param)
    return way / way.square().mean().sqrt().clamp_min(1e-12)


def _rows_without_gradient(model: nn.Module) -> dict[int, int]:
    """The row of each embedding that stands for padding: it is used, and meant to stay as it is."""
    return {
        id(module.weight): module.padding_idx
        for module in model.modules()
        if isinstance(module, (nn.Embedding, nn.EmbeddingBag)) and module.padding_idx is not None
    }


def _value(case: Case) -> float:
    """The loss, with the same random numbers every time."""
    return without_graph(lambda: float(seeded(case, _loss).detach()))


def _with_gradients(case: Case, params: Sequence[Tensor]) -> tuple[float, Sequence[Tensor | None]]:
    def compute(case: Case) -> tuple[float, Sequence[Tensor | None]]:
        loss = case.loss()
        if not loss.requires_grad:
            raise DoesNotApplyError(say("no gradient reaches the parameters"))
        return float(loss.detach()), torch.autograd.grad(loss, list(params), allow_unused=True)

    return seeded(case, compute)


def _burn_in(case: Case, params: Sequence[Tensor]) -> None:
    """A few steps, and a little noise: at the start many things are 0 or alike."""
    optimizer = Adam(params, lr=1e-3)
    for _ in range(_BURN_IN):
        loss, gradients = _with_gradients(case, params)
        if loss != loss:
            raise DoesNotApplyError(say("the loss is not finite"))
        optimizer.step(gradients)
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for param in params:
            size = param.square().mean().sqrt().clamp_min(_JITTER)
            param.add_(_direction(param, generator) * size, alpha=_JITTER)


# -- what else there is to know --------------------------------------------------------------------


def _entries(case: Case) -> Tape:
    tape = Tape()
    with torch.enable_grad(), tape:
        case.loss()
    return tape


def _must_be_wide(case: Case) -> None:
    """Differences need float64 all the way.

    Raises:
        DoesNotApplyError: Something is computed in less.
    """
    try:
        tape: Tape = seeded(case, _entries)
    except Exception as error:
        raise DoesNotApplyError(
            say("in float64 it fails: {error}", error=f"{type(error).__name__}: {error}")
        ) from error
    for entry in tape.entries:
        for _, made in named_tensors(entry.result):
            low = made.is_floating_point() and made.dtype != torch.float64
            if low and made.requires_grad:
                raise DoesNotApplyError(
                    say("the model computes in less than float64, in `{name}`", name=entry.name)
                )


def _cuts(case: Case) -> list[str]:
    """Functions in the model or loss that stop or falsify gradients, which may be meant."""
    tape: Tape = seeded(case, _entries)
    names = (entry.name for entry in tape.entries if _takes_gradient(entry.args))
    return sorted({name for name in names if name in _CUT})


def _takes_gradient(args: Any) -> bool:
    return any(tensor.requires_grad for _, tensor in named_tensors(list(args)))


def _custom(case: Case) -> tuple[list[str], list[str]]:
    """Names of the autograd functions written by hand, and of those meant to be no derivative."""
    functions = written_by_hand(seeded(case, _loss))
    meant = replaced(functions, lambda: seeded(case, _loss))
    return [function.__name__ for function in functions], [it.__name__ for it in meant]


_loss: Callable[[Case], Tensor] = Case.loss
