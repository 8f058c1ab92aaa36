"""Probe: which parameters the gradient reaches, and whether the optimizer holds each once."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.modules.loss import _Loss  # pyright: ignore[reportPrivateUsage]
from torch.optim.optimizer import Optimizer

from traindx.capture.optimizers import TrackedOptimizer
from traindx.preflight.case import Case
from traindx.preflight.comparing import without_graph
from traindx.preflight.probe import STEP, observed, probe
from traindx.records import Description, Item, Scalar, Site

_MOST = 50
"""Places that are told one by one, at most."""
_MORE = 4
"""Passes that are made if the first one does not reach everything."""
_CHANGE = 0.1
"""By which fraction a parameter is changed to see whether the loss depends on it."""
_EFFECT = 1e-5
"""Relative change of the loss that is no rounding."""
_INSIDE = (nn.MultiheadAttention,)
"""Modules that compute with their children without calling them."""


@probe(needs=("loss",), writes=("probe.unreached", "probe.outside_optimizer"), passes=1.1)
def parameters_reached(case: Case) -> Iterator[Item]:
    """Which parameters a backward pass reaches, and whether the optimizer holds each once."""
    held = _held(case.optimizer)
    wanted = [(fqn, p) for fqn, p in case.trainable() if not held or id(p) in held]
    with _counted(case.model) as calls:
        torch.autograd.backward(case.loss())
        if any(param.grad is None for _, param in wanted):
            _pass_again(case)
    # Another of the program's losses may reach what this one does not.
    unreached = [(f, p) for f, p in wanted if p.grad is None and id(p) not in case.graded]
    reached = {id(param) for _, param in case.trainable() if param.grad is not None}
    site = Site(case.name)
    yield Scalar(STEP, "probe.unreached", len(unreached), site)
    yield from _modules(case, calls, unreached, reached)
    if case.optimizer is not None:
        yield from _ownership(case, case.optimizer, reached, held)


def _pass_again(case: Case) -> None:
    """More passes with other random numbers, which a layer that is left out at random is in."""
    for seed in range(1, 1 + _MORE):
        cast(Any, torch).manual_seed(seed)
        torch.autograd.backward(case.loss())


# -- modules -------------------------------------------------------------------------------------


@contextmanager
def _counted(model: nn.Module) -> Generator[Counter[str]]:
    """How often each module is called, inside."""
    calls: Counter[str] = Counter()
    handles: list[Any] = []
    for fqn, module in _named(model):

        def called(_module: object, _args: object, fqn: str = fqn) -> None:
            calls[fqn] += 1

        handles.append(module.register_forward_pre_hook(called))
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()


def _modules(
    case: Case, calls: Counter[str], unreached: Sequence[tuple[str, Tensor]], reached: set[int]
) -> Iterator[Item]:
    """The modules that are never called, and the parameters that no gradient reaches though."""
    idle = _never_called(case.model, calls, reached)
    trainable = {id(param) for _, param in unreached}
    bare = Counter(type(m).__name__ for m in idle.values() if not list(m.parameters()))
    for fqn, module in list(idle.items())[:_MOST]:
        kind, params = type(module).__name__, list(module.parameters())
        own = sum(id(param) in trainable for param in params)
        if params and not own:  # of another network, which this optimizer does not train
            continue
        more = 0 if params else bare.pop(kind, 0) - 1
        if more >= 0:  # of modules without parameters, the first of each kind stands for all
            detail = {"kind": kind, "parameters": own, "more": more}
            yield observed("modules-called", Site(case.name, fqn), **detail)
    within = tuple(f"{fqn}." for fqn in idle)
    left = [(f, p) for f, p in unreached if not f.startswith(within)] if within else unreached
    if left:
        yield from _cut(case, left)


def _never_called(model: nn.Module, calls: Counter[str], reached: set[int]) -> dict[str, nn.Module]:
    """The outermost modules without a call in them, whose parameters nothing else uses either."""
    found: dict[str, nn.Module] = {}
    inside: tuple[str, ...] = ()
    for fqn, module in _named(model):
        if not fqn or fqn.startswith(inside):
            continue
        if isinstance(module, _INSIDE) and calls[fqn]:
            inside = (*inside, f"{fqn}.")
            continue
        used = any(name == fqn or name.startswith(f"{fqn}.") for name in calls)
        used = used or any(id(param) in reached for param in module.parameters())
        empty = (
            not list(module.children()) and not list(module.parameters()) and _is_passing(module)
        )
        if not used and not empty:
            found[fqn] = module
            inside = (*inside, f"{fqn}.")
    return found


def _is_passing(module: nn.Module) -> bool:
    """Whether nobody misses it: a container, or one that returns what it is given."""
    containers = (nn.Sequential, nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)
    return isinstance(module, (*containers, nn.Identity, _Loss))


def _named(model: nn.Module) -> Iterable[tuple[str, nn.Module]]:
    return cast("Iterable[tuple[str, nn.Module]]", cast(Any, model).named_modules())


# -- parameters without gradient -------------------------------------------------------------------


def _cut(case: Case, unreached: Sequence[tuple[str, Tensor]]) -> Iterator[Item]:
    """Whether the loss depends on them all the same: then the graph is cut on the way."""
    by_module: dict[str, list[tuple[str, Tensor]]] = {}
    for fqn, param in unreached:
        by_module.setdefault(fqn.rpartition(".")[0], []).append((fqn, param))
    effect = _effect(case, [param for _, param in unreached])
    names = list(by_module)
    yield observed(
        "parameters-reached",
        Site(case.name, names[-1]),
        parameters=[fqn for fqn, _ in unreached[:_MOST]],
        count=len(unreached),
        modules=len(names),
        effect=effect,
    )


def _effect(case: Case, params: list[Tensor]) -> float:
    """The relative change of the loss when they are changed: more than rounding, or 0."""
    before, again = _loss(case), _loss(case)
    with torch.no_grad():
        for param in params:
            noise = torch.randn(param.shape, device="cpu").to(param.device, param.dtype)
            scale = param.detach().float().square().mean().sqrt().clamp_min(1e-2)
            param.add_(noise * scale * _CHANGE)
    change, noise = abs(_loss(case) - before), abs(again - before)
    size = max(abs(before), 1e-12)
    return change / size if change > max(_EFFECT * size, 10 * noise) else 0.0


def _loss(case: Case) -> float:
    """The loss, with the same random numbers every time."""

    def compute() -> float:
        cast(Any, torch).manual_seed(0)
        return float(case.loss().detach())

    return without_graph(compute)


# -- the optimizer ---------------------------------------------------------------------------------


def _held(optimizer: Optimizer | None) -> Counter[int]:
    groups = [] if optimizer is None else optimizer.param_groups
    return Counter(id(param) for group in groups for param in group["params"])


def _ownership(
    case: Case, optimizer: Optimizer, reached: set[int], held: Counter[int]
) -> Iterator[Item]:
    """What the optimizer holds of the model: not at all, twice, or of another model."""
    named = [(fqn, param) for fqn, param in case.trainable() if id(param) in reached]
    outside = [(fqn, param) for fqn, param in named if id(param) not in held]
    if outside:
        others = _held_by_others(optimizer)
        outside = [(fqn, param) for fqn, param in outside if id(param) not in others]
    twice = [fqn for fqn, param in case.trainable() if held[id(param)] > 1]
    yield Scalar(STEP, "probe.outside_optimizer", len(outside), Site(case.name))
    places = [i for i, (_, param) in enumerate(named) if id(param) in held]
    after = [fqn for i, (fqn, p) in enumerate(named)
             if id(p) not in held and places and i > places[0]]  # fmt: skip
    missing = {fqn for fqn, _ in outside}
    yield observed(
        "optimizer-coverage",
        Site(case.name),
        optimizer=type(optimizer).__name__,
        outside=[fqn for fqn, _ in outside[:_MOST]],
        after_held=sum(fqn in missing for fqn in after),
        twice=list(twice[:_MOST]),
        num_outside=len(outside),
        num_twice=len(twice),
    )
    own = {id(param) for param in case.model.parameters()}
    stale = [p for group in optimizer.param_groups for p in group["params"]
             if id(p) not in own and p.grad is None and not _lives(p)]  # fmt: skip
    if stale and outside:
        unheld = [f"{case.name}/{fqn}" for fqn, _ in outside]
        tracked = TrackedOptimizer(optimizer, type(optimizer).__name__)
        yield Description(STEP, tracked.facts(stale, unheld))


def _held_by_others(optimizer: Optimizer) -> set[int]:
    """Ids of the parameters of all other optimizers: a model may have several."""
    others = (one for one in gc.get_objects() if issubclass(type(one), Optimizer))
    return {id(p) for one in others if one is not optimizer
            for group in one.param_groups for p in group["params"]}  # fmt: skip


def _lives(param: Tensor) -> bool:
    """Whether a module has it, of which the model is none."""
    for one in gc.get_objects():
        if issubclass(type(one), nn.Module):
            held = cast("dict[str, Tensor | None]", vars(one)["_parameters"])
            if any(param is own for own in held.values()):
                return True
    return False
