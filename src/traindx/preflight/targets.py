"""A case from `package.module:name` or `file.py:name`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from traindx.errors import UsageError
from traindx.messages import say
from traindx.preflight.case import Case, Widths
from traindx.preflight.given import case_of
from traindx.preflight.target import Target, found, made
from traindx.preflight.target import batch as batch_of
from traindx.preflight.widths import width_of


def case_named(
    target: str, *, shape: str | None = None, seed: int = 0, width_argument: str | None = None
) -> Case:
    """The case that a target names: it returns `model, batch`, and after them a loss, an optimizer.

    In place of a batch there may be a loader, of which the first batch is taken. A function with an
    argument for the width of its model can be asked for others.

    Args:
        target: What names it.
        shape: Of a standard normal batch in place of the target's own, as `64x1x28x28`.
        seed: Of that batch.
        width_argument: The argument that says how wide the model is; None takes a usual one.

    Raises:
        UsageError: It cannot be loaded, or gives something else.
    """
    what = found(target)
    width = None if isinstance(what, nn.Module) else width_of(what, target, width_argument)

    def case_at(size: int) -> Case:
        assert width is not None, "else nobody asks"
        return _case(made(width.make(size), target), target, shape, seed)

    whole = made(what if width is None else width.make(width.base), target)
    case = _case(whole, target, shape, seed)
    if width is None:
        return case
    return replace(case, widths=Widths(width.argument, width.base, case_at))


def _case(named: Target, target: str, shape: str | None, seed: int) -> Case:
    name = target.rpartition(":")[2]
    if shape is not None or not named.given:
        given = batch_of(named, target, shape=shape, seed=seed)
        return case_of(named.model, given, name=name)
    first, *rest = named.given
    loader, batch = _first_batch(first, target)
    loss = next((one for one in rest if callable(one) and not isinstance(one, Optimizer)), None)
    optimizer = next((one for one in rest if isinstance(one, Optimizer)), None)
    loss = cast("Callable[..., Any] | None", loss)
    return case_of(named.model, batch, loss, optimizer, name=name, loader=loader)


def _first_batch(given: Any, target: str) -> tuple[Any, Any]:
    """The loader, if it is one, and the batch."""
    whole: Any = given
    if isinstance(given, Tensor | Mapping | tuple | list) or not isinstance(given, Iterable):
        return None, whole
    loader = cast("Iterable[Any]", whole)
    for batch in loader:
        return loader, batch
    raise UsageError(say("The loader of `{target}` gives no batch.", target=target))
