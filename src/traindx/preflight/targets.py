"""A case from `package.module:name` or `file.py:name`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from torch import Tensor
from torch.optim.optimizer import Optimizer

from traindx.errors import UsageError
from traindx.messages import say
from traindx.preflight.case import Case
from traindx.preflight.given import case_of
from traindx.preflight.target import batch as batch_of
from traindx.preflight.target import load


def case_named(target: str, *, shape: str | None = None, seed: int = 0) -> Case:
    """The case that a target names: it returns `model, batch`, and after them a loss, an optimizer.

    In place of a batch there may be a loader, of which the first batch is taken.

    Args:
        target: What names it.
        shape: Of a standard normal batch in place of the target's own, as `64x1x28x28`.
        seed: Of that batch.

    Raises:
        UsageError: It cannot be loaded, or gives something else.
    """
    named = load(target)
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
