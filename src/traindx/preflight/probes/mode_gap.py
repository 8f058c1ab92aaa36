"""Probe: how far training lies from evaluation, and what of it dropout does not explain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from torch import Tensor, nn
from torch.nn.modules.batchnorm import (
    _BatchNorm,  # pyright: ignore[reportPrivateUsage]
    _NormBase,  # pyright: ignore[reportPrivateUsage]
)

from traindx.capture.modes import STATISTICS
from traindx.messages import say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.comparing import (
    Call,
    Place,
    all_of,
    apart,
    heard,
    parted,
    rounding,
    run,
)
from traindx.preflight.expected import Expected, Mask, random_dropouts, without_noise
from traindx.preflight.probe import STEP, observed, probe
from traindx.preflight.structures import named_tensors
from traindx.records import Item, Scalar, Site

_DRAWS = 4
"""Passes with dropout over which the variance is taken."""
_KNOWN = 0.25
"""Of what a mask drops: the error that its mean may have."""
_FORWARD = 0.35
"""What a forward pass costs, of one forward and backward."""


def _passes(case: Case) -> float:
    return _FORWARD * (5 + (_DRAWS + 1 if _shifting(case.model) else 0))


@probe(
    writes=("probe.mode_gap", "probe.unexplained_mode_gap", "probe.variance_shift"),
    passes=_passes,
)
def mode_gap(case: Case) -> Iterator[Item]:
    """How far the output in training lies from that in evaluation, before training."""
    if not case.training:
        raise DoesNotApplyError(say("the model is trained in evaluation mode"))
    modes = [(module, module.training) for module in case.model.modules()]
    yield from _shifts(case)
    in_training = run(case)
    case.model.eval()
    in_evaluation = run(case)
    yield Scalar(STEP, "probe.mode_gap", apart(in_evaluation, in_training), Site(case.name))
    for module, training in modes:  # batch statistics are known to differ; does anything else?
        module.training = training and not _by_statistics(module)
    yield from _unexplained(case)


# -- without noise ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Quiet:
    """A pass in which dropout is what it is on average."""

    output: Any
    dropped: list[float]
    sure: bool

    @classmethod
    def of(cls, case: Case, masks: Mask, seed: int = 0) -> _Quiet:
        expected = Expected(masks)
        with expected:
            output = run(case, seed=seed)
        return cls(output, expected.dropped, expected.sure)


def _unexplained(case: Case) -> Iterator[Item]:
    """What is left between the modes when neither draws nor uses the batch's statistics."""
    without_noise(case.model)
    modes = [(module, module.training) for module in case.model.modules()]
    quiet = _Quiet.of(case, "mean")
    again = _Quiet.of(case, "mean", seed=1)
    ones = _Quiet.of(case, "ones") if quiet.dropped else quiet
    case.model.eval()
    evaluated = _Quiet.of(case, "mean").output
    tolerance = rounding(evaluated)
    if not _alike(evaluated, quiet.output):
        return  # losses in training and detections in evaluation, say
    if not quiet.dropped and apart(quiet.output, again.output) > tolerance:
        return  # it draws in training what is no dropout, as a variational autoencoder
    left, without = apart(evaluated, quiet.output), apart(evaluated, ones.output)
    unscaled = bool(quiet.dropped) and without <= tolerance < left
    explained = left <= max(tolerance, _KNOWN * without if quiet.dropped else 0.0)
    yield Scalar(STEP, "probe.unexplained_mode_gap", left, Site(case.name))
    if explained:
        return
    with Expected("mean"):
        calls = heard(case, all_of)
    for module, training in modes:
        module.training = training
    with Expected("mean"):
        trained = heard(case, all_of)
    found = parted(trained, calls, tolerance) or Place("", type(case.model).__name__)
    kept = _kept_mask(trained, calls, found.fqn, tolerance)
    yield observed(
        "mode-gap",
        Site(case.name, found.fqn),
        kind=found.kind,
        unscaled=unscaled,
        sure=quiet.sure,
        dropped=max(quiet.dropped, default=0.0),
        gap=left,
        tolerance=tolerance,
        inner=_goes_on(case.model, calls, found.fqn),
        **({"mask": kept} if kept else {}),
    )


def _kept_mask(trained: list[Call], evaluated: list[Call], fqn: str, tolerance: float) -> float:
    """The part of a module's units that training makes 0 in every sample and evaluation does not.

    0 unless all others are what they are in evaluation, times one number: then it is a mask, and
    one that is not drawn anew, since masks that are drawn are at their mean here.
    """
    pairs = [
        (a.made[0], b.made[0])
        for a, b in zip(trained, evaluated, strict=False)
        if a.fqn == b.fqn == fqn and a.made and b.made and a.made[0].shape == b.made[0].shape
    ]
    if not pairs or pairs[0][0].dim() < 2 or not pairs[0][0].is_floating_point():
        return 0.0
    in_training, in_evaluation = (tensor.flatten(1) for tensor in pairs[0])
    alive = in_evaluation != 0
    gone = alive & (in_training == 0)
    units = gone.sum(0) == alive.sum(0)
    dropped = units & alive.any(0)
    rest = alive & ~dropped
    if not rest.any() or (gone & rest).any():
        return 0.0
    ratio = in_training[rest] / in_evaluation[rest]
    even = (ratio / ratio.median() - 1).abs().median() <= tolerance
    return float(dropped.sum() / alive.any(0).sum()) if even else 0.0


def _alike(first: object, second: object) -> bool:
    """Whether two outputs have the same tensors."""
    shapes = [[(p, t.shape, t.dtype) for p, t in named_tensors(one)] for one in (first, second)]
    return shapes[0] == shapes[1]


def _goes_on(model: nn.Module, calls: list[Call], fqn: str) -> bool:
    """Whether modules with parameters are called after one: else it may shape the answer only."""
    names = [call.fqn for call in calls]
    if not fqn or fqn not in names:
        return False
    outer = {fqn, *(fqn[:i] for i, letter in enumerate(fqn) if letter == "."), ""}
    modules = dict(_named(model))
    after = (name for name in names[names.index(fqn) + 1 :] if name not in outer)
    return any([*modules[name].parameters(recurse=False)] for name in after)


def _named(model: nn.Module) -> Iterable[tuple[str, nn.Module]]:
    return cast("Iterable[tuple[str, nn.Module]]", cast(Any, model).named_modules())


def _by_statistics(module: nn.Module) -> bool:
    """Whether a module takes the batch's statistics in training, and its own in evaluation.

    Torch's do, and so do those written by hand that keep such statistics.
    """
    if isinstance(module, _NormBase):
        return module.running_mean is not None
    return any(name.startswith(STATISTICS) for name, _ in module.named_buffers(recurse=False))


# -- variances -------------------------------------------------------------------------------------


def _shifting(model: nn.Module) -> bool:
    """Whether it has both dropout and batch normalization."""
    norms = any(isinstance(m, _BatchNorm) and m.running_var is not None for m in model.modules())
    return norms and bool(random_dropouts(model))


def _shifts(case: Case) -> Iterator[Item]:
    """How much more variance batch normalization meets with dropout than without."""
    if not _shifting(case.model):
        return
    dropped = [_variances(case, seed) for seed in range(_DRAWS)]
    held = [(m, dict(vars(m))) for m in case.model.modules()]
    with Expected("mean"):
        without_noise(case.model)
        still = _variances(case, 0)
    for module, attributes in held:
        vars(module).update(attributes)
    for fqn, (variance, source) in still.items():
        if not source or not variance:
            continue
        found = sum(one[fqn][0] for one in dropped if fqn in one) / _DRAWS
        shift = found / variance
        yield Scalar(STEP, "probe.variance_shift", shift, Site(case.name, fqn))
        module = dict(_named(case.model))[source]
        yield observed(
            "variance-shift",
            Site(case.name, fqn),
            shift=shift,
            dropout=source,
            p=float(cast(Any, module).p),
        )


def _variances(case: Case, seed: int) -> dict[str, tuple[float, str]]:
    """Of each batch normalization: the variance it is given, and the dropout called before it."""
    found: dict[str, tuple[float, str]] = {}
    dropouts = {*random_dropouts(case.model)}
    last = [""]
    handles: list[Any] = []

    def dropping(fqn: str) -> Any:
        def enters(module: nn.Module, _args: object) -> None:
            last[0] = fqn if module.training else last[0]

        return enters

    def norming(fqn: str) -> Any:
        def enters(module: nn.Module, args: tuple[Tensor, ...]) -> None:
            if module.training and fqn not in found:
                values = args[0].detach().double().transpose(0, 1).flatten(1)
                found[fqn] = float(values.var(1, correction=0).mean()), last[0]
            last[0] = ""  # from here on the variance is 1 whatever it was

        return enters

    for fqn, module in _named(case.model):
        hook = dropping(fqn) if fqn in dropouts else None
        if isinstance(module, _BatchNorm):
            hook = norming(fqn)
        if hook is not None:
            handles.append(cast(Any, module).register_forward_pre_hook(hook))
    try:
        run(case, seed=seed)
    finally:
        for handle in handles:
            handle.remove()
    return found
