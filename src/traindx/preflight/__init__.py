"""What can be known of a model before it is trained: probes that run it on a batch.

`traindx.preflight` is this package and what it is for at once: calling it probes a model, as
`traindx.preflight.checking.preflight` says.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """A package that can be called; torch is needed only then."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Probe a model before it is trained."""
        from traindx.preflight.checking import preflight

        return preflight(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
