"""Which collectors are told of which moment: only those that have something to do in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch import Tensor, nn

from traindx.capture.collectors import Collector
from traindx.capture.models import TrackedModel

Moment = Callable[..., None]
Watch = Callable[[TrackedModel, str, nn.Module, Tensor | None], None]
"""A collector's `output`."""


def moments(collectors: Iterable[Collector]) -> dict[Moment, tuple[Moment, ...]]:
    """The methods to call at each moment, by the method of `Collector` that they override."""
    told = [*collectors]
    every: dict[str, Moment] = {
        name: moment for name, moment in vars(Collector).items() if not name.startswith("_")
    }
    return {
        moment: tuple(
            getattr(collector, name)
            for collector in told
            if getattr(type(collector), name) is not moment
        )
        for name, moment in every.items()
    }


def watchers(collectors: Iterable[Collector]) -> list[Collector]:
    """Those that are told of outputs, if they want to."""
    return [one for one in collectors if type(one).output is not Collector.output]


def watching(collectors: Iterable[Collector]) -> tuple[Watch, ...]:
    """What to tell of the outputs of a forward pass that begins now."""
    return tuple([one.output for one in collectors if one.watches()])
