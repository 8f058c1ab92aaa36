"""Trying somebody's model on a batch without leaving a trace in it."""

from __future__ import annotations

import copy
import inspect
import random
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from traindx.errors import UsageError
from traindx.messages import say

_Made = TypeVar("_Made")

_WORDS = 300
"""Characters of somebody's error that are repeated."""


def called(model: nn.Module, inputs: Sequence[Any]) -> object:
    """What a model makes of its arguments; a dict alone is its keywords, if it has such.

    Raises:
        UsageError: It fails, in whatever way.
    """
    first = inputs[0] if len(inputs) == 1 else None
    if isinstance(first, Mapping) and _takes(model, cast("Mapping[str, Any]", first)):
        return attempted(model, **first)
    return attempted(model, *inputs)


def _takes(model: nn.Module, keywords: Mapping[str, Any]) -> bool:
    try:
        inspect.signature(model.forward).bind(**keywords)
    except (TypeError, ValueError):
        return False
    return True


def attempted(function: Callable[..., _Made], *args: Any, **kwargs: Any) -> _Made:
    """What somebody's function makes of a batch.

    Raises:
        UsageError: It fails, in whatever way.
    """
    try:
        return function(*args, **kwargs)
    except (KeyboardInterrupt, UsageError):
        raise
    except BaseException as error:  # a model may even leave the program
        raise UsageError(
            say(
                "The model fails on its batch: {error}. Give it the batch it is made for.",
                error=described(error),
            )
        ) from error


def each_of(loader: Iterable[_Made]) -> Iterator[_Made]:
    """The batches of a loader.

    Raises:
        UsageError: It fails, in whatever way.
    """
    try:
        yield from loader
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        raise UsageError(say("The loader fails: {error}.", error=described(error))) from error


def copied(model: nn.Module) -> nn.Module:
    """A model of its own that is the same.

    Raises:
        UsageError: It cannot be copied.
    """
    refuse_untriable(model)
    try:
        return copy.deepcopy(model)
    except Exception as error:
        raise UsageError(
            say("The model cannot be copied: {error}.", error=described(error))
        ) from error


def described(error: BaseException) -> str:
    """Somebody's error in a line."""
    text = " ".join(str(error).split())
    short = text if len(text) <= _WORDS else f"{text[:_WORDS]}..."
    return f"{type(error).__name__}: {short}".rstrip(": .")


@contextmanager
def unchanged(model: nn.Module) -> Generator[None]:
    """Put modes, weights, buffers and the random states back as they were.

    Raises:
        UsageError: The model is of a kind that cannot be tried.
    """
    refuse_untriable(model)
    modules = list(model.modules())
    modes = [module.training for module in modules]
    buffers = [dict(module._buffers) for module in modules]  # pyright: ignore[reportPrivateUsage]
    tensors = [*model.parameters(), *model.buffers()]
    values = [tensor.detach().clone() for tensor in tensors]
    with undrawn():
        try:
            yield
        finally:
            for module, mode, held in zip(modules, modes, buffers, strict=True):
                module.training = mode
                module._buffers.clear()  # pyright: ignore[reportPrivateUsage]
                module._buffers.update(held)  # pyright: ignore[reportPrivateUsage]
            with torch.no_grad():
                for tensor, before in zip(tensors, values, strict=True):
                    # Writing what is there already would end a graph that the user still needs.
                    if not torch.equal(tensor, before):
                        tensor.copy_(before)


@contextmanager
def undrawn() -> Generator[None]:
    """Put the random states of Python, NumPy and torch back as they were."""
    of_python, of_numpy = random.getstate(), np.random.get_state()
    with cast(Any, torch).random.fork_rng():
        try:
            yield
        finally:
            random.setstate(of_python)
            np.random.set_state(of_numpy)


def refuse_untriable(model: nn.Module) -> None:
    """Tell what can be told before a model is run.

    Raises:
        UsageError: It is compiled into TorchScript, lazy, or without values.
    """
    if any(isinstance(module, torch.jit.ScriptModule) for module in model.modules()):
        raise UsageError(
            say(
                "The model is compiled into TorchScript, which lets nobody see into its layers. "
                "Give the Python model that it was made from."
            )
        )
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if isinstance(tensor, UninitializedParameter | UninitializedBuffer):
            raise UsageError(
                say(
                    "`{name}` is lazy: its shape is not known before the first batch. Call the "
                    "model on a batch where it is made.",
                    name=name,
                )
            )
        if tensor.is_meta:
            raise UsageError(
                say(
                    "`{name}` lies on the device meta and has no values. Make the model on a "
                    "real device.",
                    name=name,
                )
            )
