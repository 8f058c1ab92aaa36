"""What the user has named to `watch`: its models are watched, and others are left alone."""

from __future__ import annotations

import weakref
from collections.abc import Callable

from torch import nn
from torch.optim.optimizer import Optimizer

from traindx.messages import Message, listed, say


class Given:
    """The models and optimizers named, held weakly. Without any model, every model is watched.

    Args:
        tell: Told once that another model has been seen and is left alone.
    """

    def __init__(self, tell: Callable[[Message], None]) -> None:
        self._tell = tell
        self._told = self._others = False
        self._models: dict[int, tuple[weakref.ref[nn.Module], str]] = {}
        self._optimizers: dict[int, weakref.ref[Optimizer]] = {}
        self._strangers: dict[int, tuple[weakref.ref[Optimizer], int]] = {}

    def __bool__(self) -> bool:
        return bool(self._models)

    @property
    def alone(self) -> bool:
        """Whether nothing has been seen that is left alone."""
        return not self._others

    def pass_over(self) -> None:
        """Something was seen that is to be left alone."""
        self._others = True

    def add(self, module: nn.Module, name: str) -> None:
        """Watch this module."""
        self._models[id(module)] = (weakref.ref(module), name)

    def add_optimizer(self, optimizer: Optimizer) -> None:
        """Watch this optimizer, whatever it holds."""
        self._optimizers[id(optimizer)] = weakref.ref(optimizer)

    def name(self, module: nn.Module) -> str | None:
        """The name of a module that was given."""
        ref, name = self._models.get(id(module), (None, ""))
        return name if ref is not None and ref() is module else None

    def admits(self, module: nn.Module) -> bool:
        """Whether a model is to be watched: it was given, or has one that was as a part."""
        if not self._models or any(self.name(part) is not None for part in module.modules()):
            return True
        self.pass_over()
        self._tell_of(type(module).__name__)
        return False

    def trains(self, optimizer: Optimizer) -> bool:
        """Whether an optimizer is to be watched: it was given, or holds parameters of a model."""
        if not self._models or _known(self._optimizers.get(id(optimizer)), optimizer):
            return True
        groups = len(optimizer.param_groups)
        ref, looked_at = self._strangers.get(id(optimizer), (None, 0))
        if _known(ref, optimizer) and looked_at == groups:
            return False
        own = {id(p) for ref, _ in self._models.values() if (m := ref()) for p in m.parameters()}
        if any(id(param) in own for group in optimizer.param_groups for param in group["params"]):
            self.add_optimizer(optimizer)
            return True
        self._strangers[id(optimizer)] = (weakref.ref(optimizer), groups)
        self.pass_over()
        return False

    def _tell_of(self, kind: str) -> None:
        if not self._told:
            self._told = True
            names = listed(f"`{name}`" for _, name in self._models.values())
            self._tell(
                say(
                    "`watch` was given {names}, so other models are left alone: a {kind} was seen.",
                    names=names,
                    kind=kind,
                )
            )


def _known(ref: weakref.ref[Optimizer] | None, optimizer: Optimizer) -> bool:
    return ref is not None and ref() is optimizer
