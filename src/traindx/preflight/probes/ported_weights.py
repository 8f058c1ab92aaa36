"""Probe: whether a model fits its batch once its weights are read in a foreign order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import permutations
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from traindx.messages import say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.comparing import without_graph
from traindx.preflight.probe import STEP, observed, probe
from traindx.preflight.unregularized import data_loss, of_a_guess, seeded, without_dropout
from traindx.records import Item, Scalar, Site

_SAMPLES = 16
"""Samples from which on nothing fits a batch by chance."""
_LOST = 0.8
"""Of the loss of a guess: above it a model knows nothing of its batch."""
_FORWARD = 0.35
"""What a forward pass costs, of one forward and backward."""
_GATES: dict[type[nn.Module], str] = {
    nn.LSTM: "ifgo",
    nn.LSTMCell: "ifgo",
    nn.GRU: "rzn",
    nn.GRUCell: "rzn",
}
"""The order in which torch keeps the gates of recurrent layers."""


class _Reading(NamedTuple):
    """Another way to read some weights.

    Attributes:
        kind: `transposed`, or `gates`.
        order: The order that the gates were in, if so.
        layers: The modules that hold the weights, by their dotted paths.
        weights: The weights, each with its values read that way.
    """

    kind: str
    order: str
    layers: list[str]
    weights: list[tuple[Tensor, Tensor]]


@probe(
    needs=("comparison", "batch"),
    writes=("probe.reread_loss",),
    passes=lambda case: _FORWARD * (1 + sum(1 for _ in _readings(case.model))),
)
def ported_weights(case: Case) -> Iterator[Item]:
    """The loss before training over that of a guess, with weights read in the best other order.

    Square matrices transposed, and the gates of recurrent layers in every other order. Only of a
    model that knows nothing of its batch as it is.
    """
    if (case.batch_size or 0) < _SAMPLES:
        raise DoesNotApplyError(say("the batch has fewer than {n} samples", n=_SAMPLES))
    copied = case.copy()
    readings = [*_readings(copied.model)]
    if not readings:
        raise DoesNotApplyError(say("no weights could be read in another order"))
    without_dropout(copied.model)
    guess = of_a_guess(copied)
    as_it_is = _loss(copied)
    if not 0 < _LOST * guess <= as_it_is:
        raise DoesNotApplyError(say("the model fits its batch as it is"))
    found = [(_reread(copied, reading), reading) for reading in readings]
    loss, best = min(found, key=lambda one: one[0])
    yield Scalar(STEP, "probe.reread_loss", loss / guess, Site(case.name))
    yield observed(
        "ported-weights",
        Site(case.name, best.layers[0]),
        kind=best.kind,
        order=best.order,
        layers=[*best.layers],
        loss=loss / guess,
        before=as_it_is / guess,
    )


def _loss(case: Case) -> float:
    return without_graph(lambda: float(seeded(case, data_loss).detach()))


def _reread(case: Case, reading: _Reading) -> float:
    """The loss with some weights read another way; they are as before then."""
    held = [(weight, weight.detach().clone()) for weight, _ in reading.weights]
    with torch.no_grad():
        for weight, values in reading.weights:
            weight.copy_(values)
    try:
        loss = _loss(case)
    finally:
        with torch.no_grad():
            for weight, values in held:
                weight.copy_(values)
    return loss if loss == loss else float("inf")


def _readings(model: nn.Module) -> Iterator[_Reading]:
    named = [*cast("Iterable[tuple[str, nn.Module]]", cast(Any, model).named_modules())]
    square = [
        (fqn, module.weight)
        for fqn, module in named
        if isinstance(module, nn.Linear) and module.in_features == module.out_features > 1
    ]
    if square:
        turned = [(weight, weight.detach().t().clone()) for _, weight in square]
        yield _Reading("transposed", "", [fqn for fqn, _ in square], turned)
    for kind, gates in _GATES.items():
        layers = [(fqn, module) for fqn, module in named if type(module) is kind]
        for order in permutations(range(len(gates))) if layers else ():
            if [*order] != sorted(order):
                weights = [pair for _, layer in layers for pair in _in_order(layer, order)]
                foreign = "".join(gates[order.index(i)] for i in range(len(gates)))
                yield _Reading("gates", foreign, [fqn for fqn, _ in layers], weights)


def _in_order(layer: nn.Module, order: tuple[int, ...]) -> Iterator[tuple[Tensor, Tensor]]:
    """The weights of a recurrent layer, with its gates taken in another order."""
    for name, weight in layer.named_parameters(recurse=False):
        if name.startswith(("weight_ih", "weight_hh", "bias_")):
            blocks = weight.detach().chunk(len(order))
            yield weight, torch.cat([blocks[i] for i in order])
