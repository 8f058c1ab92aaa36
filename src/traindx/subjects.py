"""What `watch` is given to watch: checked without importing torch, and told clearly if wrong."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from traindx.errors import UsageError, WrongTypeError
from traindx.messages import Message, say

if TYPE_CHECKING:
    from torch import nn
    from torch.optim.optimizer import Optimizer


def modules(given: object) -> list[nn.Module]:
    """The models among what was given; whatever is one was made by torch, so torch is there.

    Raises:
        WrongTypeError: It is none.
        UsageError: It has nothing to train.
    """
    found = _several(given)
    for value in found:
        if not _is(value, "nn", "Module"):
            raise WrongTypeError(
                say(
                    "`watch` takes a model, a `torch.nn.Module`, or a list of some; `model` is "
                    "{what}. {repair}",
                    what=_what(value),
                    repair=_model_repair(value),
                )
            )
        if next(iter(cast(Any, value).parameters()), None) is None:
            raise UsageError(
                say(
                    "`watch` takes a model that is trained; `model` is {what} without parameters. "
                    "Give the module that holds them.",
                    what=_what(value),
                )
            )
    return cast("list[nn.Module]", found)


def optimizers(given: object) -> list[Optimizer]:
    """The optimizers among what was given.

    Raises:
        WrongTypeError: It is none.
    """
    found = _several(given)
    for value in found:
        if not _is(value, "optim", "Optimizer"):
            raise WrongTypeError(
                say(
                    "`watch` takes an optimizer, a `torch.optim.Optimizer`, or a list of some; "
                    "`optimizer` is {what}. {repair}",
                    what=_what(value),
                    repair=_optimizer_repair(value),
                )
            )
    return cast("list[Optimizer]", found)


def _several(given: object) -> list[object]:
    if given is None:
        return []
    if isinstance(given, list | tuple) and given:
        return list(cast("Sequence[object]", given))
    return [given]


def _is(value: object, part: str, name: str) -> bool:
    torch: Any = sys.modules.get("torch")
    kind = getattr(getattr(torch, part, None), name, None)
    return kind is not None and isinstance(value, kind)


def _what(value: object) -> Message:
    if isinstance(value, type):
        return say("the class `{name}`", name=value.__name__)
    return say("a `{name}`", name=type(value).__name__)


def _model_repair(value: object) -> Message:
    if isinstance(value, type):
        return say("Give an instance of it: `model = {name}(...)`.", name=value.__name__)
    if isinstance(value, str):
        return say("A name for the run goes into `name=`.")
    if _is(value, "optim", "Optimizer"):
        return say("The optimizer comes second: `traindx.watch(model, optimizer)`.")
    return say("Give the object that you call on each batch.")


def _optimizer_repair(value: object) -> Message:
    if _is(value, "nn", "Module"):
        return say("Put several models in a list: `traindx.watch([a, b])`.")
    if _is(getattr(value, "optimizer", None), "optim", "Optimizer"):
        return say("Give the optimizer inside of it: `optimizer=....optimizer`.")
    return say("Leave it out, and those that hold the model's parameters are watched.")
