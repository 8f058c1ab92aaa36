"""Losses as functions of a model's output, and passes that are several calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn

from traindx.preflight.structures import mapped, named_tensors
from traindx.preflight.tape import Changed, Entry, Score

_OF_CLASSES = ("weight", "pos_weight")
"""Arguments of losses that are no samples, though they may be as many."""


def same(tensor: Tensor) -> Tensor:
    """The tensor itself."""
    return tensor


class Loss(Protocol):
    """The scalar given to backward, as a function of the model's output."""

    def of(self, output: Any) -> Tensor:
        """Its value, with its graph."""
        ...

    def targets(self) -> list[Tensor]:
        """The tensors it takes besides the output."""
        ...

    def changed(self, change: Changed, modules: Mapping[int, nn.Module] | None) -> Loss:
        """The same of other targets, and of copies of the modules."""
        ...


@dataclass(frozen=True, slots=True)
class Direct:
    """A loss that was given as a function of output and target, or of the output alone."""

    function: Callable[..., Any]
    target: tuple[Any, ...]

    def of(self, output: Any) -> Tensor:
        """Its value, with its graph."""
        return cast(Tensor, self.function(output, *self.target))

    def targets(self) -> list[Tensor]:
        """The tensors it takes besides the output."""
        return [tensor for _, tensor in named_tensors(self.target)]

    def changed(self, change: Changed, modules: Mapping[int, nn.Module] | None) -> Direct:
        """The same of other targets."""
        return replace(self, target=tuple(mapped(list(self.target), change)))


@dataclass(frozen=True, slots=True)
class InOutput:
    """A loss that the model returns, at a place of its output."""

    place: str

    def of(self, output: Any) -> Tensor:
        """Its value, with its graph."""
        return dict(named_tensors(output))[self.place]

    def targets(self) -> list[Tensor]:
        """The model is given its targets, and the loss none."""
        return []

    def changed(self, change: Changed, modules: Mapping[int, nn.Module] | None) -> InOutput:
        """It is where it was."""
        return self


@dataclass(frozen=True, slots=True)
class Replayed:
    """A loss that a program computes, played again.

    Attributes:
        score: What the program did.
        several: Whether it called models several times, so that the output is theirs in a row.
        leaves: What stands for each tensor that nobody made, by its id.
        keep: Leaves that are put in as they are: parameters, and what is no sample.
        wide: Whether to keep the precision where the program lowers it.
    """

    score: Score
    several: bool
    leaves: Mapping[int, Tensor]
    keep: frozenset[int]
    wide: bool = False

    @classmethod
    def of_score(cls, score: Score) -> Replayed:
        """As the program computed it."""
        named = [t for entry in score.entries for name in _OF_CLASSES
                 if isinstance(t := entry.kwargs.get(name), Tensor)]  # fmt: skip
        leaves = {id(leaf): leaf for leaf in score.leaves()}
        return cls(score, len(score.calls) > 1, leaves, frozenset(map(id, named)))

    def of(self, output: Any) -> Tensor:
        """Its value, with its graph."""
        outputs = output if self.several else [output]
        return self.score.of(outputs, self._leaf, wide=self.wide)

    def _leaf(self, tensor: Tensor) -> Tensor:
        return self.leaves.get(id(tensor), tensor)

    def targets(self) -> list[Tensor]:
        """The tensors it takes besides the output."""
        own = (entry for entry in self.score.entries if not entry.is_call)
        keys = dict.fromkeys(id(t) for entry in own for t in entry.given())
        return [self.leaves[key] for key in keys if key in self.leaves and key not in self.keep]

    def changed(self, change: Changed, modules: Mapping[int, nn.Module] | None) -> Replayed:
        """The same of other targets."""
        leaves = {
            key: leaf if key in self.keep and modules is None else change(leaf)
            for key, leaf in self.leaves.items()
        }
        # What an operation changed in place is copied from before it, and is no leaf of its own.
        return replace(self, leaves=leaves)


@dataclass(frozen=True, slots=True)
class Calls:
    """Several calls that make up one pass; its arguments are the tensors that go into them."""

    score: Score
    inputs: tuple[int, ...]
    change: Changed = same
    modules: Mapping[int, nn.Module] = field(default_factory=dict[int, nn.Module])
    wide: bool = False

    def outputs(self, args: tuple[Any, ...]) -> list[Any]:
        """What each call returns."""
        given = dict(zip(self.inputs, args, strict=True))

        def leaf(tensor: Tensor) -> Tensor:
            return given[id(tensor)] if id(tensor) in given else self.change(tensor)

        def run(entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            module = self.modules.get(id(entry.function), entry.function)
            with ExitStack() as stack:
                for device, dtype in () if self.wide else entry.autocast:
                    stack.enter_context(torch.autocast(device, dtype=dtype, cache_enabled=False))
                return module(*args, **kwargs)

        return self.score.outputs(leaf, run)

    def changed(self, change: Changed, modules: Mapping[int, nn.Module] | None) -> Calls:
        """The same on other leaves, and of copies of the modules."""
        before = self.change

        def both(tensor: Tensor) -> Tensor:
            return change(before(tensor))

        return replace(self, change=both, modules=self.modules if modules is None else modules)

    def wider(self) -> Calls:
        """In float64."""
        return replace(self, wide=True)
