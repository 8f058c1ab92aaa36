"""Keeping dynamo from compiling traindx itself.

Where a whole training step is compiled, `backward` and the optimizer are called inside a compiled
region, and so is whatever listens to them. Dynamo would take our functions for the user's, compile
them, and break on what it finds there.
"""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Iterator
from typing import Any


def leave_uncompiled() -> None:
    """Have dynamo run every function of ours as it is, wherever it would begin to compile one.

    What it may trace as a part of the user's function (`traindx.log`) it traces as before.
    """
    from torch._dynamo.eval_frame import skip_code

    modules = [it for name, it in sys.modules.items() if name.partition(".")[0] == "traindx"]
    for code in {
        code for module in modules for value in _defined(module) for code in _codes(value)
    }:
        skip_code(code)


def _defined(module: types.ModuleType) -> Iterator[object]:
    """The functions of a module, and those of its classes."""
    for value in vars(module).values():
        if getattr(value, "__module__", None) == module.__name__:
            yield value
            if isinstance(value, type):
                yield from vars(value).values()


def _codes(value: Any) -> Iterator[types.CodeType]:
    """The code of a function, of what it wraps, and of the functions in it."""
    for each in (value, getattr(value, "fget", None), getattr(value, "__func__", None)):
        while each is not None:  # a cached function is none itself, but wraps one
            if inspect.isfunction(each):
                yield from _with_inner(each.__code__)
            each = getattr(each, "__wrapped__", None)


def _with_inner(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _with_inner(constant)
