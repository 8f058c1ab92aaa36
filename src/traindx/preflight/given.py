"""A case from what a program has at hand: model, batch, loss and optimizer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from traindx.capture.models import is_compiled, unwrapped
from traindx.errors import UsageError, WrongTypeError
from traindx.messages import Message, say
from traindx.preflight.case import Case, Loaders
from traindx.preflight.isolation import isolated
from traindx.preflight.losses import Direct, InOutput
from traindx.preflight.structures import named_tensors

NO_LOSS = say("no loss was given, and the model returns none")


def case_of(
    model: nn.Module,
    batch: Any,
    loss: Callable[..., Any] | None = None,
    optimizer: Optimizer | None = None,
    *,
    name: str | None = None,
    loader: Any = None,
) -> Case:
    """The case of these.

    A batch is what the model is called with: a tuple or list is its arguments, a dict its keyword
    arguments if the model has them, anything else its one argument. With a loss, the last element
    of a tuple or list is the target: `loss(model(*inputs), target)`. Of any other batch the loss is
    given the whole: `loss(output, batch)`, or the output alone if it takes no more.

    Without a loss, one that the model returns is taken: `output.loss`, `output["loss"]`, or an
    output that is a single number.

    Raises:
        WrongTypeError: Something is of another kind.
        UsageError: The loss fails on the model's output, or gives no single number.
    """
    if not isinstance(model, nn.Module):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise WrongTypeError(
            say("A model is a `torch.nn.Module`; got a `{kind}`.", kind=type(model).__name__)
        )
    if loss is not None and not callable(loss):
        raise WrongTypeError(
            say("A loss is a function or module; got a `{kind}`.", kind=type(loss).__name__)
        )
    inner = unwrapped(model)
    args, kwargs, target = _parted(inner, batch, loss)
    case = Case(
        model=inner,
        name=name or type(inner).__name__,
        args=args,
        kwargs=kwargs,
        optimizer=optimizer,
        compiled=is_compiled(model),
        training=inner.training,
        loaders=Loaders(loader),
    )
    return _with_loss(case, loss, target)


def _parted(
    model: nn.Module, batch: Any, loss: Callable[..., Any] | None
) -> tuple[tuple[Any, ...], dict[str, Any], tuple[Any, ...]]:
    """Arguments, keyword arguments, and what the loss is given besides the output."""
    whole: Any = batch
    if isinstance(batch, Mapping):
        named = {str(key): value for key, value in cast("Mapping[Any, Any]", batch).items()}
        return ((), named, (whole,)) if _takes(model, named) else ((whole,), {}, (whole,))
    if type(whole) in (tuple, list):
        parts = tuple(cast("tuple[Any, ...]", whole))
        if loss is not None and len(parts) > 1:
            return parts[:-1], {}, parts[-1:]
        return parts, {}, parts[-1:]
    return (whole,), {}, (whole,)


def _takes(model: nn.Module, named: Mapping[str, Any]) -> bool:
    """Whether a model has these keyword arguments."""
    try:
        inspect.signature(model.forward).bind(**named)
    except (TypeError, ValueError):
        return False
    return True


def _with_loss(case: Case, loss: Callable[..., Any] | None, target: tuple[Any, ...]) -> Case:
    with isolated(case), torch.enable_grad():
        try:
            output = case.output()
        except Exception as error:
            raise UsageError(
                say(
                    "The model fails on its batch: {error}. Give it the batch it is made for.",
                    error=f"{type(error).__name__}: {error}",
                )
            ) from error
        if loss is None:
            place = _place_of_loss(output)
            if place is None:
                return replace(case, why_no_loss=NO_LOSS)
            return replace(case, loss_found=InOutput(place))
        target = target if not target or _takes_two(loss) else ()
        value = _value(loss, output, target)
    if not (isinstance(value, Tensor) and value.numel() == 1 and value.is_floating_point()):
        raise UsageError(
            say(
                "The loss gives no single number but {what}. It needs to return a tensor with one "
                "element.",
                what=_described(value),
            )
        )
    if not value.requires_grad:
        return replace(case, why_no_loss=say("no gradient flows from the loss back into the model"))
    return replace(case, loss_found=Direct(loss, target), why_no_loss=Message(""))


def _value(loss: Callable[..., Any], output: Any, target: tuple[Any, ...]) -> Any:
    try:
        return loss(output, *target)
    except Exception as error:
        raise UsageError(
            say(
                "The loss fails on the model's output: {error}. It is called as "
                "`loss(output, target)`, where the target is the last element of the batch.",
                error=f"{type(error).__name__}: {error}",
            )
        ) from error


def _takes_two(loss: Callable[..., Any]) -> bool:
    function = loss.forward if isinstance(loss, nn.Module) else loss
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # it has no signature to look at
        return True
    return True


def _place_of_loss(output: Any) -> str | None:
    """Where in an output its loss is: named so, or a single number with a graph."""
    found = named_tensors(output)
    numbers = [(p, t) for p, t in found if t.numel() == 1 and t.requires_grad]
    named = [place for place, _ in numbers if place.rpartition(".")[2] == "loss"]
    if named:
        return named[0]
    scalars = [place for place, tensor in numbers if tensor.dim() == 0]
    return scalars[0] if scalars and numbers[0][0] == scalars[0] else None


def _described(value: object) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    return f"a {type(value).__name__}"
