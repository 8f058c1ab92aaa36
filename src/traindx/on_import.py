"""Do something as soon as a module has been imported, without importing it earlier.

A script may set environment variables that torch reads when it is imported (thread counts,
devices), so traindx must not import torch before the script does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


def when_imported(name: str, then: Callable[[], None]) -> None:
    """Call `then` once, right after the first import of `name`; at once if it is imported."""
    if name in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _Finder(name, then))


class _Finder(MetaPathFinder):
    """Stands first in `sys.meta_path` until the module has been imported, then leaves.

    That somebody asks for the module's spec (`importlib.util.find_spec`) is no import yet.
    """

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name = name
        self._then = then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's own spec, whose loader will call us once."""
        if fullname != self._name:
            return None
        spec = self._true_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            self._listen_to(spec.loader)
        return spec

    def _true_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(fullname, path, target) if find else None
            if spec is not None:
                return spec
        return None

    def _listen_to(self, loader: Loader) -> None:
        """Shadow one method of this one loader, for one call."""
        load = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            vars(loader).pop("exec_module", None)
            load(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self._then()

        loader.exec_module = exec_module  # pyright: ignore[reportAttributeAccessIssue]
