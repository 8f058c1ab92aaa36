"""A model run twice, and where the two runs part: the first module given the same, making another.

Both runs start from the same random state, buffers and attributes, in batches of the same shape, so
that whatever differs comes of what was changed between them.
"""

from __future__ import annotations

import math
import random
import sys
import weakref
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar, cast

import torch
from torch import Tensor, nn

from traindx.preflight.case import Case
from traindx.preflight.structures import mapped, named_tensors

_T = TypeVar("_T")

Kept = Callable[[Tensor], Tensor | None]
"""The part of a tensor that should be the same in both runs; None if it has none."""

_differentiating: weakref.WeakSet[nn.Module] = weakref.WeakSet()
"""Models found to differentiate within their forward pass, which must have a graph for it."""

_ROUNDING = 1e-4
"""Relative change (RMS) that rounding may make of an output in float32 or better."""


def run(case: Case, *, seed: int = 0) -> Any:
    """The output of a pass without gradient that leaves the model as it was, from a fixed seed."""
    with _as_it_was(case.model):
        return run_on(case, seed=seed)


def run_on(case: Case, *, seed: int = 0) -> Any:
    """The output of such a pass that leaves behind what it leaves behind."""

    def compute() -> Any:
        with _without_shortcuts():
            seeded(seed)
            return case.output()

    if case.model not in _differentiating:
        try:
            with torch.no_grad():
                return compute()
        except RuntimeError as error:
            if "does not require grad" not in str(error):
                raise
            _differentiating.add(case.model)
    return mapped(compute(), Tensor.detach)


def written(case: Case) -> list[str]:
    """The buffers that such a pass writes, which are then put back, by name."""
    before = {name: buffer.detach().clone() for name, buffer in case.model.named_buffers()}
    with _as_it_was(case.model):
        run_on(case)
        after = dict(case.model.named_buffers())
        return [name for name, old in before.items() if not torch.equal(old, after.get(name, old))]


def without_graph(compute: Callable[[], _T]) -> _T:
    """What something computes without a graph; with one where the loss itself differentiates."""
    try:
        with torch.no_grad():
            return compute()
    except RuntimeError:
        return compute()


def loss_again(case: Case) -> float:
    """The loss of a pass that leaves the model as it was, from a fixed seed."""

    def compute() -> float:
        with _as_it_was(case.model), _without_shortcuts():
            seeded(0)
            return float(case.loss().detach())

    return without_graph(compute)


def all_of(tensor: Tensor) -> Tensor | None:
    """The whole of a tensor."""
    return tensor


def seeded(seed: int) -> None:
    """Seed Python's, NumPy's and torch's random numbers.

    `torch.manual_seed` would note where it was called from for every device that is not in use,
    which takes longer than a small model's step.
    """
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        cast(Any, sys.modules["numpy"]).random.seed(seed)


@contextmanager
def _as_it_was(model: nn.Module) -> Generator[None]:
    """Put buffers and attributes back: a pass may write to both."""
    attributes = [(module, dict(vars(module))) for module in model.modules()]
    inner = [dict(module._buffers) for module, _ in attributes]  # pyright: ignore[reportPrivateUsage]
    values = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    try:
        yield
    finally:
        for (module, before), buffers in zip(attributes, inner, strict=True):
            vars(module).update(before)
            for name in vars(module).keys() - before.keys():
                del vars(module)[name]
            module._buffers.update(buffers)  # pyright: ignore[reportPrivateUsage]
        for buffer, value in values:
            if not torch.equal(buffer, value):
                buffer.copy_(value)


@contextmanager
def _without_shortcuts() -> Generator[None]:
    """Let transformers call their modules one by one, as in training, so that they are heard."""
    mha = cast(Any, torch.backends).mha
    before = mha.get_fastpath_enabled()
    mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        mha.set_fastpath_enabled(before)


# -- how far apart ---------------------------------------------------------------------------------


def apart(first: object, second: object, kept: Kept | None = None) -> float:
    """The greatest change (RMS over RMS) among two outputs' tensors, of what both should share.

    Infinite where what was finite is so no more; 0 where there is nothing to compare.
    """
    pairs = zip(named_tensors(first), named_tensors(second), strict=False)
    found = [
        _change(a, b, kept)
        for (_, a), (_, b) in pairs
        if a.shape == b.shape and (a.is_floating_point() or a.is_complex())
    ]
    return max(found, default=0.0)


def _change(a: Tensor, b: Tensor, kept: Kept | None) -> float:
    whole = a
    if kept is not None:
        some, other = kept(a), kept(b)
        if some is None or other is None:
            return 0.0
        a, b = some, other
    x, y, finite = _double(a), _double(b), torch.isfinite(_double(a))
    if not torch.equal(finite, torch.isfinite(y)):
        return math.inf
    size = _rms(_double(whole))
    moved = _rms(torch.where(finite, x - y, 0.0))
    return moved / size if size else (math.inf if moved else 0.0)


def _double(tensor: Tensor) -> Tensor:
    tensor = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    return tensor.detach().double()


def _rms(tensor: Tensor) -> float:
    values = torch.where(torch.isfinite(tensor), tensor, 0.0)
    return float(values.square().mean().sqrt()) if values.numel() else 0.0


def rounding(output: object) -> float:
    """What rounding alone may change of an output: more of one in few digits."""
    floats = [t for _, t in named_tensors(output) if t.is_floating_point()]
    return max([_ROUNDING, *(16 * torch.finfo(t.dtype).eps for t in floats)])


# -- where -----------------------------------------------------------------------------------------


class Call(NamedTuple):
    """One call of a module: the parts of its tensors that both runs should share."""

    fqn: str
    kind: str
    given: list[Tensor]
    made: list[Tensor]


class Place(NamedTuple):
    """The module in which two runs part; `fqn` is empty for the model itself."""

    fqn: str
    kind: str


def parting(
    first: Case, second: Case, kept: Kept, tolerance: float, *, seed: int = 0
) -> Place | None:
    """The first module, from the inside, that was given the same in both and made another.

    None if it was none: what differs comes in by a way that no module's arguments show.

    Args:
        first: A case.
        second: The same but for what was changed.
        kept: What both should share.
        tolerance: Change (RMS over RMS) from which on an output is another.
        seed: Of the second's random numbers; the first's is 0.
    """
    return parted(heard(first, kept), heard(second, kept, seed=seed), tolerance)


def parted(first: Sequence[Call], second: Sequence[Call], tolerance: float) -> Place | None:
    """The same of the calls that were heard in each run."""
    for a, b in zip(first, second, strict=False):
        same = a.fqn == b.fqn and a.given and _furthest(a.given, b.given) <= _given(tolerance)
        if same and _furthest(a.made, b.made) > tolerance:
            return Place(a.fqn, a.kind)
    return None


def _given(tolerance: float) -> float:
    """Arguments that are taken as equal must be so by more than what is told of an output."""
    return tolerance / 10


def _furthest(some: Sequence[Tensor], others: Sequence[Tensor]) -> float:
    pairs = zip(some, others, strict=False)
    return max([_change(a, b, None) for a, b in pairs if a.shape == b.shape], default=0.0)


def heard(case: Case, kept: Kept, *, seed: int = 0) -> list[Call]:
    """Every call of a module, in the order they return: the inner before the outer."""
    calls: list[Call] = []
    entered: list[list[Tensor]] = []

    def enters(_module: object, args: object, kwargs: object) -> None:
        entered.append(_parts([args, kwargs], kept))

    def hook(fqn: str) -> Any:
        def left(module: nn.Module, _args: object, _kwargs: object, output: object) -> None:
            calls.append(Call(fqn, type(module).__name__, entered.pop(), _parts(output, kept)))

        return left

    named = cast("Iterable[tuple[str, Any]]", cast(Any, case.model).named_modules())
    handles: list[Any] = []
    try:
        for fqn, module in named:
            handles.append(module.register_forward_pre_hook(enters, with_kwargs=True))
            handles.append(module.register_forward_hook(hook(fqn), with_kwargs=True))
        run(case, seed=seed)
    finally:
        for handle in handles:
            handle.remove()
    return calls


def _parts(value: Any, kept: Kept) -> list[Tensor]:
    found = [kept(tensor) for _, tensor in named_tensors(value)]
    return [part.detach().clone() for part in found if part is not None]


# -- the batch -------------------------------------------------------------------------------------


def replaced(case: Case, tensors: Mapping[int, Tensor]) -> Case:
    """The case with some tensors of its batch, by their ids, replaced by others."""
    from traindx.preflight.structures import mapped

    def change(tensor: Tensor) -> Tensor:
        return tensors.get(id(tensor), tensor)

    return case.with_args(mapped(list(case.args), change), mapped(dict(case.kwargs), change))
