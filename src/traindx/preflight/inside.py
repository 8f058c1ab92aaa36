"""Which module is being called."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Any, NamedTuple, cast

from torch import nn


class Inner(NamedTuple):
    """A module that is being called; `fqn` is empty for the model itself."""

    fqn: str
    kind: str


class Inside:
    """Knows, while it is entered, the innermost module of a model that is being called.

    Args:
        model: The model.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._calls: list[Inner] = []
        self._handles: list[Any] = []

    @property
    def innermost(self) -> Inner:
        """It; the model itself where none is."""
        return self._calls[-1] if self._calls else Inner("", type(self._model).__name__)

    @property
    def is_called(self) -> bool:
        """Whether any module is being called."""
        return bool(self._calls)

    def __enter__(self) -> Inside:
        """Listen to the modules."""
        named = cast("Iterable[tuple[str, Any]]", cast(Any, self._model).named_modules())

        def left(_module: object, _args: object, _output: object) -> None:
            self._calls.pop()

        for fqn, module in named:

            def enters(module: nn.Module, _args: object, fqn: str = fqn) -> None:
                self._calls.append(Inner(fqn, type(module).__name__))

            self._handles.append(module.register_forward_pre_hook(enters))
            self._handles.append(module.register_forward_hook(left))
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        """Listen no more."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._calls.clear()
