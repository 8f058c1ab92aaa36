"""Which layers of a model have left batches out of their running statistics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from traindx.messages import Message, say
from traindx.norm.modules.guards import Guarded


@dataclass(frozen=True, slots=True)
class Skipped:
    """A layer that has skipped batches.

    Attributes:
        fqn: Its name in the model.
        batches: How many it has left out, since the model was made or its statistics were reset.
    """

    fqn: str
    batches: int

    @property
    def message(self) -> Message:
        """For people."""
        return say(
            "`{layer}` has left {batches} of its batches out of its running statistics, which "
            "they would have made infinite or NaN.",
            layer=self.fqn,
            batches=self.batches,
        )


def report(model: nn.Module) -> tuple[Skipped, ...]:
    """The layers of a model that have skipped batches, in network order.

    Waits for the device, once for each that holds layers: call it between epochs, say.
    """
    named: Iterable[tuple[str, nn.Module]] = cast(Any, model).named_modules()
    counters: dict[str, Tensor] = {
        fqn: layer.skipped_batches
        for fqn, layer in named
        if isinstance(layer, Guarded) and layer.skipped_batches is not None
    }
    counts = {fqn: count for group in _by_device(counters) for fqn, count in _read(group).items()}
    return tuple(Skipped(fqn, counts[fqn]) for fqn in counters if counts[fqn])


def _by_device(counters: dict[str, Tensor]) -> list[dict[str, Tensor]]:
    groups: dict[torch.device, dict[str, Tensor]] = {}
    for fqn, counter in counters.items():
        groups.setdefault(counter.device, {})[fqn] = counter
    return list(groups.values())


def _read(counters: dict[str, Tensor]) -> dict[str, int]:
    values: list[int] = cast(Any, torch.stack(list(counters.values()))).tolist()
    return dict(zip(counters, values, strict=True))
