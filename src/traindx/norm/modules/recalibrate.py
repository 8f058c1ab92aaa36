"""Running statistics of a trained model, estimated anew over a loader ("Precise BatchNorm").

Wu & Johnson 2021, "Rethinking 'Batch' in BatchNorm", sec. 3: running averages lag behind the
weights, or mix what they should not; the statistics of the population do not. Every batch passes
as in training, normalized by its own statistics, with everything else in evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm  # pyright: ignore[reportPrivateUsage]

from traindx.errors import UsageError
from traindx.messages import listed, say
from traindx.norm.modules.population import Gather, Moments, over_ranks
from traindx.trial import attempted, called, each_of, refuse_untriable, unchanged

Forward = Callable[[nn.Module, Any], object]
"""Calls a model on a batch."""


@dataclass(frozen=True, slots=True)
class LayerChange:
    """What recalibration did to one layer.

    Attributes:
        fqn: Its name.
        elements: Elements of each channel behind the new statistics.
        gap: How far its old statistics were from the new ones, as `norm.running_gap` measures it:
            in standard deviations of the normalized values, RMS over channels. Infinite or NaN
            where the old ones were not finite.
    """

    fqn: str
    elements: int
    gap: float


@dataclass(frozen=True, slots=True)
class Recalibration:
    """What recalibration did.

    Attributes:
        batches: Batches of this rank that went in.
        skipped: Batches of this rank left out, since a layer saw in them what is not finite.
        layers: The layers with new statistics, in network order.
        uncalled: Layers that no batch reached: as they were.
    """

    batches: int
    skipped: int
    layers: tuple[LayerChange, ...]
    uncalled: tuple[str, ...]


def recalibrate(
    model: nn.Module,
    batches: Iterable[Any],
    *,
    forward: Forward | None = None,
    limit: int | None = None,
    gather: Gather | None = None,
) -> Recalibration:
    """Replace the running statistics of every BatchNorm layer by those of a population.

    Nothing else of the model is changed: not its parameters, gradients, modes, other buffers, nor
    the random state.

    Args:
        model: With BatchNorm layers that keep running statistics.
        batches: A loader: inputs, or tuples whose first element they are, or dicts of arguments.
        forward: Calls the model on a batch, where that is not what `batches` says.
        limit: Batches to take at most.
        gather: Brings the ranks' statistics together (`process_group`); each rank passes its own
            part of the data, and all end with the same bits.

    Raises:
        UsageError: The model has no such layer, fails on a batch, or there is no batch.
    """
    refuse_untriable(model)
    layers = _tracking(model)
    seen = _Seen(layers)
    with unchanged(model), torch.no_grad():
        model.eval()
        for layer in layers.values():
            layer.training = True
        with seen.listening():
            for number, batch in enumerate(each_of(batches)):
                if limit is not None and number >= limit:
                    break
                attempted(forward or call, model, batch)
                seen.batch_ended()
    return _replaced(layers, seen, gather)


def call(model: nn.Module, batch: Any) -> object:
    """The model on a batch, as loaders commonly give it."""
    if isinstance(batch, list | tuple):
        return called(model, cast("Sequence[object]", batch)[:1])
    return called(model, [batch])


def _tracking(model: nn.Module) -> dict[str, _BatchNorm]:
    named: Iterable[tuple[str, nn.Module]] = cast(Any, model).named_modules()
    layers = {
        fqn: module
        for fqn, module in named
        if isinstance(module, _BatchNorm) and module.running_mean is not None
    }
    if not layers:
        raise UsageError(
            say(
                "Recalibration needs BatchNorm layers that keep running statistics; {model} has "
                "none. Other normalizations do the same in training and evaluation.",
                model=type(model).__name__,
            )
        )
    return layers


class _Seen:
    """What the layers have normalized so far."""

    def __init__(self, layers: Mapping[str, _BatchNorm]) -> None:
        self.moments: dict[str, Moments] = {}
        self.batches = self.skipped = 0
        self._layers = layers
        self._batch: dict[str, Moments] = {}

    @contextmanager
    def listening(self) -> Generator[None]:
        """Hooks on the layers, removed at the end."""
        handles: list[Any] = []
        for fqn, layer in self._layers.items():
            handles.append(
                cast(Any, layer).register_forward_pre_hook(self._hook(fqn), with_kwargs=True)
            )
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _hook(self, fqn: str) -> Callable[..., None]:
        def note(module: nn.Module, args: tuple[Tensor, ...], kwargs: dict[str, Tensor]) -> None:
            del module
            moments = Moments.of(args[0] if args else kwargs["input"])
            earlier = self._batch.get(fqn)  # of a layer called several times
            self._batch[fqn] = moments if earlier is None else earlier.merged(moments)

        return note

    def batch_ended(self) -> None:
        """Take the batch in, unless it would poison everything."""
        batch, self._batch = self._batch, {}
        if not all(moments.finite for moments in batch.values()):
            self.skipped += 1
            return
        self.batches += 1
        for fqn, moments in batch.items():
            earlier = self.moments.get(fqn)
            self.moments[fqn] = moments if earlier is None else earlier.merged(moments)


def _replaced(
    layers: Mapping[str, _BatchNorm], seen: _Seen, gather: Gather | None
) -> Recalibration:
    found = [seen.moments.get(fqn, _nothing(layer)) for fqn, layer in layers.items()]
    batches = seen.batches
    if gather is not None:
        found = over_ranks(found, gather)
        own = torch.tensor(float(batches), device=found[0].mean.device)
        batches = sum(int(count) for count in gather(own))
    known = {fqn: each for fqn, each in zip(layers, found, strict=True) if float(each.count) > 1}
    if not known:
        raise UsageError(
            say(
                "No statistics came of {batches} batches, of which {skipped} held numbers that "
                "are not finite. Give a loader of finite batches that reach {layers}.",
                batches=seen.batches + seen.skipped,
                skipped=seen.skipped,
                layers=listed(list(layers)[:3]),
            )
        )
    changes = tuple(_replace(fqn, layers[fqn], each, batches) for fqn, each in known.items())
    uncalled = tuple(fqn for fqn in layers if fqn not in known)
    return Recalibration(seen.batches, seen.skipped, changes, uncalled)


def _nothing(layer: _BatchNorm) -> Moments:
    mean = cast(Tensor, layer.running_mean)
    return Moments.none(mean.numel(), mean.device)


def _replace(fqn: str, layer: _BatchNorm, population: Moments, batches: int) -> LayerChange:
    mean, var = cast(Tensor, layer.running_mean), cast(Tensor, layer.running_var)
    gap = running_gap(mean, var, population, layer.eps)
    with torch.no_grad():
        mean.copy_(population.mean)
        var.copy_(population.unbiased)
        if layer.num_batches_tracked is not None:
            layer.num_batches_tracked.fill_(batches)
    return LayerChange(fqn, int(population.count), gap)


def running_gap(mean: Tensor, var: Tensor, population: Moments, eps: float) -> float:
    """What normalizing a population by these statistics does wrong (`norm.running_gap`).

    Its normalized value h becomes a h + b; the root mean square over channels of b and a - 1.
    """
    scale = (var.double() + eps).rsqrt()
    shift = (population.mean - mean.double()) * scale
    stretch = (population.variance + eps).sqrt() * scale - 1
    return float((shift.square() + stretch.square()).mean().sqrt())
