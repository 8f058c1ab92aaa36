"""The torch functions that are called inside a block, and what they are given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode

from traindx.preflight.structures import tensors


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A function, and what it is called with.

    Attributes:
        function: What is called.
        args: Its arguments.
        kwargs: Its keyword arguments.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @property
    def name(self) -> str:
        """`cross_entropy`, `__add__`."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def argument(self, name: str, place: int, default: Any = None) -> Any:
        """What was given by name, or else at a place."""
        return self.kwargs.get(name, self.args[place] if len(self.args) > place else default)

    def given(self) -> list[Tensor]:
        """The tensors it is given."""
        return tensors([self.args, dict(self.kwargs)])

    def run(self) -> Any:
        """Call it."""
        return self.function(*self.args, **self.kwargs)


class Calls(TorchFunctionMode):
    """Inside, every call of a torch function is answered by `answer`."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Answer a call."""
        return self.answer(Call(func, args, kwargs or {}))

    def answer(self, call: Call) -> Any:
        """What a call returns."""
        return call.run()
