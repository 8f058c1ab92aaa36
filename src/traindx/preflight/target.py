"""`module:name` and `file.py:name`: a model, and the batch to try it on.

The name is a model, or a function without arguments that makes one, or a model and its batch, or
its loader. The target is the user's own program: it is imported as Python would.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import re
import sys
import traceback
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import cast

import torch
from torch import nn

from traindx.errors import UsageError
from traindx.messages import listed, say
from traindx.nested import tensors
from traindx.trial import described, each_of

_LARGEST = 2**28
"""Numbers of a batch at most: a gibibyte of them."""


@dataclass(frozen=True, slots=True)
class Target:
    """A model, and what comes with it.

    Attributes:
        model: The model.
        given: What its function returns after it: a batch, or a loader and more.
    """

    model: nn.Module
    given: tuple[object, ...] = ()

    @property
    def inputs(self) -> tuple[object, ...]:
        """The arguments to call it with; none if the target gives only a model.

        Of a loader, those of its first batch: of a batch of several, the first is the input.
        """
        if not self.given:
            return ()
        batch = self.given[0]
        if isinstance(batch, tuple | list):
            return tuple(cast("Sequence[object]", batch))
        alone = isinstance(batch, torch.Tensor | Mapping)
        if alone or not isinstance(batch, Iterable):
            return (cast(object, batch),)
        first = _first(cast("Iterable[object]", batch))
        if isinstance(first, tuple | list):
            return tuple(cast("Sequence[object]", first)[:1])
        return (first,)


def _first(loader: Iterable[object]) -> object:
    for batch in each_of(loader):
        return batch
    raise UsageError(say("The loader gives no batch."))


def load(target: str) -> Target:
    """The model that a target names.

    Raises:
        UsageError: It cannot be imported, has no such name, fails, or gives something else.
    """
    return made(found(target), target)


def found(target: str) -> object:
    """What a target names: a model, or what makes one.

    Raises:
        UsageError: It cannot be imported, or has no such name.
    """
    place, colon, name = target.rpartition(":")
    if not (colon and place and name):
        raise UsageError(
            say(
                "A target is `package.module:name` or `file.py:name`; got {target}. The name is a "
                "model, or a function that returns one.",
                target=repr(target),
            )
        )
    module = _imported(place)
    if not hasattr(module, name):
        near = get_close_matches(name, [n for n in vars(module) if not n.startswith("_")], 3, 0.4)
        hint = say(" Did you mean {near}?", near=listed(near)) if near else ""
        raise UsageError(say("`{place}` has no `{name}`.{hint}", place=place, name=name, hint=hint))
    return getattr(module, name)


def batch(target: Target, name: str, *, shape: str | None, seed: int) -> tuple[object, ...]:
    """The arguments to call a model with: a standard normal batch, or the target's own.

    Args:
        target: The model.
        name: What it was asked for by.
        shape: Of the standard normal batch, as text; None takes the target's own.
        seed: Of the standard normal batch.

    Raises:
        UsageError: There is neither.
    """
    if shape is not None:
        generator = torch.Generator(device="cpu").manual_seed(seed)
        return (torch.randn(*parsed(shape), generator=generator, device="cpu"),)
    if not target.inputs:
        raise UsageError(
            say(
                "`{name}` gives a model without a batch. Give the batch's shape, as "
                "`--shape 64x784`, or name a function with `return model, batch`.",
                name=name,
            )
        )
    return target.inputs


def mode(model: nn.Module) -> bool | None:
    """Whether a model is in training; None where its modules differ."""
    modes = {module.training for module in model.modules()}
    return modes.pop() if len(modes) == 1 else None


def size(inputs: Sequence[object]) -> int | None:
    """Samples of a batch: the first tensor's first extent; None if it has none."""
    first = next(tensors(list(inputs)), None)
    return None if first is None or not first.dim() else first.shape[0]


def parsed(text: str) -> tuple[int, ...]:
    """`64x1x28x28` as a shape.

    Raises:
        UsageError: It is none.
    """
    parts = text.lower().replace(",", "x").split("x")
    if not all(re.fullmatch("0*[1-9][0-9]{0,18}", part) for part in parts):
        raise UsageError(
            say("A shape is whole numbers from 1 on, as `64x1x28x28`; got {text}.", text=repr(text))
        )
    shape = tuple(map(int, parts))
    if math.prod(shape) > _LARGEST:
        raise UsageError(
            say(
                "A batch of shape {text} has {count:.2g} numbers; {most:.2g} are the most that are "
                "made. Give fewer samples.",
                text=repr(text),
                count=Decimal(math.prod(shape)),
                most=_LARGEST,
            )
        )
    return shape


def made(found: object, target: str) -> Target:
    """The model that something named is, or makes.

    Raises:
        UsageError: It fails, or gives something else.
    """
    if isinstance(found, type) or not isinstance(found, nn.Module):
        if not callable(found):
            raise UsageError(_no_model(target, found))
        found = _called(cast("Callable[[], object]", found), target)
    if isinstance(found, nn.Module):
        return Target(found)
    if isinstance(found, tuple):
        model, *rest = cast("tuple[object, ...]", found)
        if isinstance(model, nn.Module) and rest:
            return Target(model, tuple(rest))
    raise UsageError(_no_model(target, cast(object, found)))


def _no_model(target: str, found: object) -> str:
    return say(
        "`{target}` gives a `{kind}`. It needs to be a `torch.nn.Module`, or a function that "
        "returns one, or one and its batch: `return model, batch`.",
        target=target,
        kind=type(found).__name__,
    )


def _called(function: Callable[[], object], target: str) -> object:
    try:
        with _no_arguments():
            return function()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # it may even leave the program
        raise UsageError(
            say(
                "`{target}` failed: {error}{where}. It is called without arguments.",
                target=target,
                error=described(error),
                where=_where(error),
            )
        ) from error


def _imported(place: str) -> ModuleType:
    try:
        with _no_arguments():
            return _of_file(Path(place)) if place.endswith(".py") else _of_name(place)
    except (KeyboardInterrupt, UsageError):
        raise
    except BaseException as error:
        raise UsageError(
            say(
                "`{place}` cannot be imported: {error}{where}.",
                place=place,
                error=described(error),
                where=_where(error),
            )
        ) from error


def _of_name(name: str) -> ModuleType:
    with _searched(Path.cwd()):  # as `python -m` has it
        return importlib.import_module(name)


def _of_file(file: Path) -> ModuleType:
    if not file.is_file():
        raise UsageError(say("There is no file `{file}`.", file=file))
    name = file.stem
    while _taken(name, file):
        name = f"_{name}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None, "the name ends in .py"
    module = importlib.util.module_from_spec(spec)
    with _searched(file.resolve().parent):  # as `python FILE` has it
        sys.modules[name] = module  # so that its classes can be pickled and its types resolved
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return module


def _taken(name: str, file: Path) -> bool:
    """Whether a module of another file has this name, or would have, as `random`."""
    there = sys.modules.get(name)
    if there is None:
        return name in sys.stdlib_module_names
    of = getattr(there, "__file__", None)
    return of is None or Path(of).resolve() != file.resolve()


@contextmanager
def _no_arguments() -> Generator[None]:
    """Have the program find no arguments: those of the command line are ours."""
    ours, sys.argv = sys.argv, sys.argv[:1]
    try:
        yield
    finally:
        sys.argv = ours


@contextmanager
def _searched(folder: Path) -> Generator[None]:
    """Have Python look for modules in a folder first, from now on unless this fails."""
    if str(folder) in sys.path:
        yield
        return
    sys.path.insert(0, str(folder))
    try:
        yield
    except BaseException:
        with suppress(ValueError):  # the program may have taken it out itself
            sys.path.remove(str(folder))
        raise


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    importing = ("<frozen", str(importlib.__file__))
    theirs = [frame for frame in frames if not frame.filename.startswith(importing)]
    last = theirs[-1]
    return f" ({Path(last.filename).name}:{last.lineno})" if last.filename != __file__ else ""
