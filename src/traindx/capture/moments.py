"""Which collectors are told of which moment: only those that have something to do in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from traindx.capture.collectors import Collector

Moment = Callable[..., None]


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
