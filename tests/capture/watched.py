"""Training watched in this process: a capture that always lets go, and what it wrote as a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn

from traindx.capture.capture import Capture
from traindx.facts import ModelFacts, ModuleFacts
from traindx.records import EventKind, Item, Point, TensorStats, one_by_one
from traindx.run import Run, Series


class Recording:
    """A sink that keeps everything.

    Attributes:
        items: What was written.
        warnings: What the user was told.
    """

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.warnings: list[str] = []

    def write(self, items: Sequence[Item]) -> None:
        self.items.extend(one_by_one(items))

    def close(self) -> None:
        pass

    @property
    def run(self) -> Run:
        return Run(self.items)

    @property
    def models(self) -> set[str]:
        return set(self.run.models)

    def model(self, name: str | None = None) -> ModelFacts:
        """The model of this name, or the only one."""
        models = self.run.models
        return models[name] if name else one(models.values())

    @property
    def header(self) -> dict[str, Any]:
        return self.run.header

    def module(self, fqn: str) -> ModuleFacts:
        return one(module for module in self.model().modules if module.fqn == fqn)

    def series(self, quantity: str, fqn: str | None = None, model: str | None = None) -> Series:
        """The only series of a quantity at the place."""
        return one(self.run.series(quantity, model=model, fqn=fqn))

    def values(
        self, quantity: str, fqn: str | None = None, model: str | None = None
    ) -> list[float]:
        """Its values; empty if it was not measured there."""
        found = self.run.series(quantity, model=model, fqn=fqn)
        return [] if not found else one(found).values.tolist()

    def sites(self, quantity: str) -> set[str]:
        """The fqns at which a quantity was measured."""
        return {series.site.fqn for series in self.run.series(quantity)}

    def events(self, kind: EventKind) -> list[dict[str, object]]:
        return [dict(event.detail) for event in self.run.events(kind)]

    def notes(self) -> str:
        return "\n".join(str(note["text"]) for note in self.events(EventKind.NOTE))

    def skips(self) -> dict[tuple[str, str], str]:
        """Why something was not measured, by fqn and point."""
        return {
            (event.site.fqn, str(event.detail["point"])): str(event.detail["reason"])
            for event in self.run.events(EventKind.SKIPPED)
        }

    def last_stats(self, point: Point, fqn: str) -> TensorStats:
        """The last statistics at a place of the only model."""
        site = one(series.site for series in self.run.series(f"{point}.mean", fqn=fqn))
        return [*self.run.stats(point, site).values()][-1]


def one(found: Iterable[Any]) -> Any:
    """The only one of them."""
    (only,) = found
    return only


@contextmanager
def watched(
    every: int | None = 1,
    *,
    budget: float = 0.03,
    clock: Callable[[], float] = perf_counter,
    patience: float = 0.0,
    fails: bool = False,
    trap_nan: bool = False,
    compiled_activations: bool = False,
) -> Iterator[Recording]:
    """Watch what happens inside; afterwards torch is as before, and nothing was wrong."""
    recording = Recording()
    capture = Capture(
        [recording],
        every=every,
        budget=budget,
        trap_nan=trap_nan,
        compiled_activations=compiled_activations,
        warn=recording.warnings.append,
        clock=clock,
        patience=patience,
    )
    capture.arm()
    try:
        yield recording
    finally:
        capture.close(0)
    assert bool(recording.warnings) == fails, recording.warnings


def mlp(*, sizes: Sequence[int] = (6, 8, 3)) -> Any:
    """Linear layers with ReLU between them; of any type, since tests reach into it."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def batch(rows: int = 5, columns: int = 6, classes: int = 3) -> tuple[Tensor, Tensor]:
    """The same inputs and classes whenever they are asked for."""
    generator = torch.Generator().manual_seed(rows)
    x = torch.randn(rows, columns, generator=generator)
    return x, torch.randint(0, classes, (rows,), generator=generator)


def train(
    _model: nn.Module,
    *,
    steps: int = 3,
    optimizer: Any = None,
    data: tuple[Tensor, Tensor] | None = None,
    loss: Callable[[Any, Any], Tensor] = nn.functional.cross_entropy,
) -> list[float]:
    """A plain training loop; its losses.

    A model is named by its variable in the nearest frame, but not by one with an underscore: so it
    is named by the test's.
    """
    optimizer = optimizer or torch.optim.SGD(_model.parameters(), lr=0.1)
    x, y = data or batch()
    losses: list[float] = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss(_model(x), y)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses
