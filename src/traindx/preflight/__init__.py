"""What can be known of a model before it is trained: probes that run it on a batch.

`traindx.preflight` is this package, and calling it probes a model, as
`traindx.preflight.checking.preflight` says. So it does not matter what is imported first: there is
one object of that name, which has the modules below it and can be called.
"""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """A package that can be called; torch is needed only then."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Probe a model before it is trained."""
        return _function()(*args, **kwargs)

    @property
    def __signature__(self) -> inspect.Signature:
        """What it takes, for `help` and editors."""
        return inspect.signature(_function())


def _function() -> Any:
    return import_module("traindx.preflight.checking").preflight


sys.modules[__name__].__class__ = _Callable
