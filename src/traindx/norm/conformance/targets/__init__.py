"""The targets that are known by name: each file here names its own.

Adding a framework is adding a file with a `TARGETS`. Nothing here imports a framework; `make` does.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module

from traindx.norm.conformance.target import Entry


@cache
def entries() -> Mapping[str, Entry]:
    """Every target by its name, in the order of files and of their lists."""
    modules = sorted(info.name for info in pkgutil.iter_modules(__path__))
    found = (import_module(f"{__name__}.{name}").TARGETS for name in modules)
    return {entry.name: entry for several in found for entry in several}
