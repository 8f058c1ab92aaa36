"""Probe: is the network affine in some input, so that its layers are one?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from traindx.messages import say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.comparing import seeded
from traindx.preflight.inside import Inside
from traindx.preflight.probe import STEP, observed, probe
from traindx.preflight.structures import mapped, named_tensors
from traindx.preflight.weighted import Moves, Weighted, Weighting
from traindx.records import Item, Scalar, Site

_SAMPLES = 16
"""Samples that are looked at."""
_CHANGE = 0.1
"""By which fraction the parameters are moved."""
_NEAR = 1e-2
"""Curvature in the program's own precision from which on the exact answer is not asked for."""
_LENGTHS = (1.0, 1e3, 1e6)
"""Of the steps, in deviations of the data."""
_INPUTS = 4
"""Inputs that are moved one by one at most."""
_EMBEDDINGS = -1
"""The place, among the inputs, of the embeddings of what is no real number."""


class _Affinity(NamedTuple):
    """How affine the weighted layers are in what was moved.

    Attributes:
        curvature: The greatest second difference of a layer over its first one.
        layers: All that were called, in order.
        whole: Whether each of them changes with what was moved.
    """

    curvature: float
    layers: list[Weighted]
    whole: bool

    @property
    def stacked(self) -> list[Weighted]:
        """Those that work on what others of them have made."""
        return [layer for layer in self.layers if layer.behind]


def _passes(case: Case) -> float:
    """Three forward passes of a part of the batch, for each input and for all of them."""
    size, inputs = case.batch_size or 1, len(_given(case))
    each = 1.2 * min(1.0, _SAMPLES / size)
    return each * (1 + (min(inputs, _INPUTS) if inputs > 1 else 0))


@probe(writes=("probe.curvature",), passes=_passes)
def affine_test(case: Case) -> Iterator[Item]:
    """How far the layers are from affine in an input: f(x + d) + f(x - d) = 2 f(x)."""
    found = _found(_few(case))
    yield Scalar(STEP, "probe.curvature", found.curvature, Site(case.name))
    places = list(dict.fromkeys(layer.place for layer in found.layers))
    first, last = found.layers[0], found.layers[-1]
    inner = [layer.made for layer in found.layers[:-1]]
    if first.source:  # an embedding is a layer, too: of as many inputs as it has words
        inner.append(first.given)
    yield observed(
        "affine-test",
        Site(case.name, places[-1]),
        layers=[*places[:50]],
        stacked=len({layer.place for layer in found.stacked}),
        narrowest=min(inner, default=0),
        given=first.source or first.given,
        made=last.made,
    )


def _few(case: Case) -> Case:
    plain = replace(case, loss_found=None)  # the loss is not asked for
    try:
        return plain.subset(_SAMPLES)
    except DoesNotApplyError:
        return plain  # a graph's nodes, say, of which none can be left out


def _found(case: Case) -> _Affinity:
    """The choice of inputs in which the layers are nearest to one affine map."""
    case.model.eval()  # dropout is off, and BatchNorm is affine
    exact: Case | None = None
    best: _Affinity | None = None
    for chosen in _choices(case):
        found = _affinity(case, chosen)
        if found is not None and found.whole and found.stacked and found.curvature < _NEAR:
            if exact is None:  # the exact answer costs a copy in float64
                exact = case.double()
                _move(exact.model)
            found = _at_all_scales(exact, chosen)
        if found is not None and found.whole and (best is None or _better(found, best)):
            best = found
    if best is None:
        raise DoesNotApplyError(say("no input reaches all linear layers and convolutions"))
    return best


def _at_all_scales(case: Case, chosen: frozenset[int]) -> _Affinity | None:
    """The greatest curvature over steps of several lengths; None if one of them leads nowhere.

    Data may lie far from every kink of a ReLU, which is affine there, and nowhere else.
    """
    found = [_affinity(case, chosen, length) for length in _LENGTHS]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return None
    return max(known, key=lambda one: one.curvature)


def _better(one: _Affinity, other: _Affinity) -> bool:
    return (bool(one.stacked), -one.curvature) > (bool(other.stacked), -other.curvature)


def _choices(case: Case) -> list[frozenset[int]]:
    """What is moved while the rest is held: all, each input alone, and embeddings alone.

    An input is known by its place.
    """
    inputs = range(len(_given(case)))
    has_any = any(isinstance(m, nn.Embedding | nn.EmbeddingBag) for m in case.model.modules())
    embeds = [_EMBEDDINGS] if has_any else []
    alone = [*embeds, *inputs][: _INPUTS + 1]
    if not alone:
        raise DoesNotApplyError(say("the input is not made of real numbers"))
    every = frozenset([*embeds, *inputs])
    return [every, *(frozenset([one]) for one in alone if len(every) > 1)]


def _move(model: nn.Module) -> None:
    """Take what is trained from where it starts: a branch that begins times zero does bend."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for param in (param for param in model.parameters() if param.requires_grad):
            noise = torch.randn(param.shape, generator=generator, dtype=torch.float64).to(param)
            size = param.square().mean().sqrt().clamp_min(1e-2)
            param.add_(noise * size * _CHANGE)


def _affinity(case: Case, chosen: frozenset[int], length: float = 1.0) -> _Affinity | None:
    """The second differences of the weighted layers over their first ones; None if undecided."""
    middle, ahead, behind = (_pass(case, chosen, times) for times in (0.0, length, -length))
    layers = middle.layers
    if not layers or not len(layers) == len(ahead.layers) == len(behind.layers):
        return None
    curvature = 0.0
    for here, after, before in zip(layers, ahead.layers, behind.layers, strict=True):
        y, up, down = (one.output.double() for one in (here, after, before))
        slope = up - down
        if not bool(slope.isfinite().all()) or (here is layers[-1] and not bool(slope.any())):
            return None
        if bool(slope.any()):
            bend = (up + down - 2 * y).square().mean().sqrt()
            curvature = max(curvature, float(bend / slope.square().mean().sqrt()))
    return _Affinity(curvature, layers, not middle.others)


def _given(case: Case) -> list[Tensor]:
    """The tensors of real numbers among the arguments."""
    named = named_tensors([list(case.args), dict(case.kwargs)])
    return [
        t for _, t in named if t.is_floating_point() and t.layout is torch.strided and t.dim() > 1
    ]


def _pass(case: Case, chosen: frozenset[int], times: float) -> Weighting:
    """The weighted layers of a pass of the batch, of which a part is moved by some steps."""
    given = _given(case)
    moves = Moves(times)
    steps = {id(t): moves.moved(t, place) for place, t in enumerate(given) if place in chosen}
    args = mapped(list(case.args), lambda t: steps.get(id(t), t))
    kwargs = mapped(dict(case.kwargs), lambda t: steps.get(id(t), t))
    data = [t for _, t in named_tensors([args, kwargs])]
    inside, params = Inside(case.model), case.model.parameters()
    embeddings = moves if _EMBEDDINGS in chosen else None
    watched = Weighting(inside, params, data, [*steps.values()], embeddings)
    seeded(0)
    with inside, watched:
        case.output(args, kwargs)
    return watched
