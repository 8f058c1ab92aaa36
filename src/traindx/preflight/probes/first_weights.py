"""Probe: the weights of the first layer, to be looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from torch import nn

from traindx.capture.first_weights import first_weights as items_of
from traindx.messages import say
from traindx.nested import first_tensor
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.probe import STEP, probe
from traindx.records import Item


@probe(writes=("first_layer.weights",), passes=0.4)
def first_weights(case: Case) -> Iterator[Item]:
    """What the weights of the first linear layer or convolution look like."""
    given = first_tensor((*case.args, *case.kwargs.values()))
    sample = () if given is None else tuple(given.shape[1:])
    found = items_of(case.name, _called(case), sample, STEP)
    if not found:
        raise DoesNotApplyError(say("the first layer has no weight of its own to be looked at"))
    yield from found


def _called(case: Case) -> list[tuple[str, nn.Module]]:
    """The modules in the order of their first calls."""
    order: dict[str, nn.Module] = {}
    named = cast("Iterable[tuple[str, nn.Module]]", cast(Any, case.model).named_modules())
    handles: list[Any] = []
    for fqn, module in named:

        def called(module: nn.Module, _args: object, fqn: str = fqn) -> None:
            order.setdefault(fqn, module)

        handles.append(module.register_forward_pre_hook(called))
    try:
        case.output()
    finally:
        for handle in handles:
            handle.remove()
    return [*order.items()]
