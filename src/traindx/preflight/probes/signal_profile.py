"""Probe: how signal and gradient travel through the layers, beside what theory says."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

from torch import nn

from traindx.errors import UsageError
from traindx.messages import Message, say
from traindx.nested import tensors
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.probe import STEP, observed, probe
from traindx.preflight.propagation import passages
from traindx.preflight.target import mode
from traindx.records import Item, Scalar, Site
from traindx.signal.gaussian import moments
from traindx.signal.layers import (
    BatchNormalized,
    Elementwise,
    Junction,
    LayerNormalized,
    Signal,
    Step,
    Weighted,
)
from traindx.signal.profile import Passage
from traindx.signal.propagation import Propagation, propagation
from traindx.trial import called, unchanged

_LEAST_LAYERS = 4
"""Layers with weights, each called once, from which depth is worth a word."""
_SHOWN = 200
"""Layers whose gains are told."""


@probe(
    writes=(
        *("probe.output_rms", "probe.expected_rms", "probe.gradient_rms"),
        *("probe.gradient_fall", "probe.signal_growth"),
    ),
    passes=3.5,
    seconds=lambda _case: 0.02,
)
def signal_profile(case: Case) -> Iterator[Item]:
    """What signal and gradient every layer has at the start, and what theory expects."""
    inputs = _inputs(case)
    model = case.model if case.score is None else _Played(case)
    try:
        measured = [_named(passage) for passage in passages(model, inputs)]
    except UsageError as error:
        raise DoesNotApplyError(Message(str(error).rstrip("."))) from error
    quick = [_without_samples(passage) for passage in measured]
    picture = propagation(case.name, quick, samples=case.batch_size, training=mode(case.model))
    yield from _by_layer(case.name, picture)
    yield from _along_the_depth(case.name, picture, _sizes(model, inputs))


class _Played(nn.Module):
    """Several calls of a program as one model."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.played = case.model
        self._case = (case,)  # in a tuple, lest its model be registered twice

    def forward(self, *args: Any) -> Any:
        """Everything that the calls return."""
        return self._case[0].output(args)


def _named(passage: Passage) -> Passage:
    fqn, tied = passage.fqn.removeprefix("played."), passage.tied.removeprefix("played.")
    return replace(passage, fqn=fqn, tied=tied)


def _inputs(case: Case) -> list[object]:
    """The batch as positional arguments, or a dict alone as keywords."""
    if not case.kwargs:
        return list(case.args)
    if not case.args:
        return [dict(case.kwargs)]
    bound = inspect.signature(case.model.forward).bind(*case.args, **case.kwargs)
    if bound.kwargs:
        raise DoesNotApplyError(say("the model is called with keywords besides its arguments"))
    return list(bound.args)


def _by_layer(name: str, picture: Propagation) -> Iterator[Scalar]:
    seen: set[str] = set()
    for passage, theory in zip(picture.passages, picture.expected, strict=True):
        if not passage.fqn or passage.fqn in seen or passage.made is None:
            continue
        seen.add(passage.fqn)
        site = Site(name, passage.fqn)
        yield Scalar(STEP, "probe.output_rms", passage.made.rms, site)
        if theory.local is not None:
            yield Scalar(STEP, "probe.expected_rms", theory.local.rms, site)
        if passage.gradient is not None:
            yield Scalar(STEP, "probe.gradient_rms", math.sqrt(passage.gradient), site)


@dataclass(frozen=True, slots=True)
class _OfSizes(Elementwise):
    """An activation of which only the size of the signal is asked, not what samples share.

    That takes one integral for two nested ones: a hundredth of the time.
    """

    def step(self, x: Signal) -> Step:
        """As of the whole, but the samples' share stays as it comes."""
        made = moments(self.activation, max(x.mean_square - x.mean**2, 0.0), x.mean)
        share = x.common / x.mean_square if x.mean_square else 1.0
        signal = Signal(made.mean, made.mean_square, share * made.mean_square)
        return Step(signal, made.slope_square)


def _without_samples(passage: Passage) -> Passage:
    if not isinstance(passage.layer, Elementwise):
        return passage
    return replace(passage, layer=_OfSizes(passage.layer.activation))


# -- along the depth -------------------------------------------------------------------------------


class _Depth(NamedTuple):
    """Layers with weights that are called once, in order, with their places among the passages."""

    places: list[int]
    passages: Sequence[Passage]

    def layers(self) -> list[Passage]:
        return [self.passages[i] for i in self.places]


def _along_the_depth(name: str, picture: Propagation, sizes: Mapping[str, int]) -> Iterator[Item]:
    depth = _depth(picture.passages)
    layers = depth.layers()
    if len(layers) < _LEAST_LAYERS:
        return
    first, last = layers[0], layers[-1]
    size = sizes.get(first.fqn, 1) / max(sizes.get(last.fqn, 1), 1)
    assert first.gradient is not None, "chosen for it"
    assert last.gradient is not None, "chosen for it"
    # Norms and not RMS: a mean over positions spreads one gradient over many elements.
    fall = math.sqrt(size * first.gradient / last.gradient)
    hidden = layers[-2].made
    start = first.made
    growth = hidden.rms / start.rms if hidden and start and start.rms else math.nan
    site = Site(name)
    yield Scalar(STEP, "probe.gradient_fall", fall, site)
    yield Scalar(STEP, "probe.signal_growth", growth, site)
    mended = _mended(picture, fall)
    yield observed(
        "signal-profile",
        site,
        fall=fall,
        growth=growth,
        layers=[layer.fqn for layer in layers[:_SHOWN]],
        gains=_gains(picture, depth),
        mended=mended,
        normalized=any(
            isinstance(p.layer, BatchNormalized | LayerNormalized) for p in picture.passages
        ),
        activations=[each.name for each in picture.stabilities],
        sigmoids=_sigmoids(picture.passages),
    )


def _sigmoids(measured: Sequence[Passage]) -> int:
    """Sigmoids one after another; 0 where a branch leads past them."""
    if any(isinstance(passage.layer, Junction) for passage in measured):
        return 0
    layers = (passage.layer for passage in measured)
    return sum(isinstance(x, Elementwise) and x.activation.name == "Sigmoid" for x in layers)


def _depth(measured: Sequence[Passage]) -> _Depth:
    calls: dict[str, int] = {}
    for passage in measured:
        calls[passage.fqn] = calls.get(passage.fqn, 0) + 1
    places = [
        i
        for i, passage in enumerate(measured)
        if isinstance(passage.layer, Weighted)
        and calls[passage.fqn] == 1
        and not passage.tied
        and passage.gradient  # 0 where a branch begins with zeros, on purpose
    ]
    return _Depth(places, measured)


def _gains(picture: Propagation, depth: _Depth) -> list[Any]:
    """Of each layer its gain, and the one that would keep the mean square; None if not known."""
    found: list[Any] = []
    for i in depth.places[:_SHOWN]:
        layer = picture.passages[i].layer
        assert isinstance(layer, Weighted), "chosen for it"
        right = picture.repaired[i].gain
        usable = right is not None and math.isfinite(right)
        found.append([picture.passages[i].fqn, layer.gain, right if usable else None])
    return found


def _mended(picture: Propagation, fall: float) -> float | None:
    """The gradient's fall with the right gains, as norms; None if theory does not get there."""
    told = picture.fall
    if told is None or told.repaired is None or not told.measured:
        return None
    return fall * told.repaired / told.measured


def _sizes(model: nn.Module, inputs: Sequence[object]) -> dict[str, int]:
    """Elements of the output of every module without children."""
    sizes: dict[str, int] = {}

    def hook(fqn: str) -> Any:
        def left(_module: object, _args: object, output: object) -> None:
            made = next(tensors(output), None)
            sizes[fqn.removeprefix("played.")] = 0 if made is None else made.numel()

        return left

    named = cast("Iterable[tuple[str, Any]]", cast(Any, model).named_modules())
    handles = [m.register_forward_hook(hook(fqn)) for fqn, m in named if not [*m.children()]]
    try:
        with unchanged(model):  # with a graph, which a model may need within its forward pass
            called(model, inputs)
    finally:
        for handle in handles:
            handle.remove()
    return sizes
