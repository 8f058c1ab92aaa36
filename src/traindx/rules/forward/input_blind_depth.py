"""F001: what the network has been given fades layer by layer until nothing of it is left."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, pairwise
from typing import TYPE_CHECKING

from traindx.facts import ModelFacts
from traindx.findings import Evidence, Severity, first_layers
from traindx.ledger import NEVER
from traindx.messages import say
from traindx.records import Point, Site
from traindx.rules.order import network_order, of_facts
from traindx.rules.remembered import remembered
from traindx.rules.rule import rule
from traindx.run import Run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Reals = NDArray[np.float64]

_SEEN = 1e-3
"""Share from which on a layer sees the input: where none does, the inputs themselves are alike."""
_CUT = 0.1
"""What a layer leaves of the share of the layer before it, at most, to cut it."""
_HITS = 3
_SAMPLES = 64
"""Samples that so many measured steps must hold together to be compared."""


@dataclass(frozen=True, slots=True)
class _Layer:
    """One module's output on a batch.

    Attributes:
        fqn: The module.
        share: How much of its mean square differs between the samples of the batch.
        weighs: Whether the module itself owns a weight matrix.
    """

    fqn: str
    share: float
    weighs: bool


@dataclass(frozen=True, slots=True)
class _Fade:
    """How the input fades: from the layer that sees most of it to the first that sees none.

    Attributes:
        start: The layer that sees most.
        at: The weight layer that begins the fading: this one, or else the next behind it.
        blind: The first layer that sees none.
        behind: All layers from there on.
        threshold: The share under which a layer is blind.
    """

    start: _Layer
    at: _Layer
    blind: _Layer
    behind: tuple[_Layer, ...]
    threshold: float


def too_few_samples(run: Run) -> str:
    """Why the rule does not apply: batches too small to compare samples."""
    sizes = [series.last for series in run.series("batch.size")]
    least = math.ceil(_SAMPLES / _HITS)
    if not sizes or max(sizes) >= least:
        return ""
    return say(
        "batches of {size:.0f} samples are too small to compare samples (at least {least})",
        size=max(sizes),
        least=least,
    )


@rule(
    "F001",
    severity=Severity.ERROR,
    reads=("output.batch_share",),
    hits=_HITS,
    applies=too_few_samples,
    explained_by=(
        "F003",
        "F005",
        "L007",
        "L008",
        "N004",
        "N010",
        "N011",
        "N012",
        "N017",
        "O001",
        "O016",
        "S002",
    ),
    remedies=("use-relu-he",),
)
def input_blind_depth(run: Run, *, share: float = 1e-6, layers: float = 5) -> Iterator[Evidence]:
    """The deeper the layer, the less it depends on the input, until the output is the same for all.

    ## Why it matters
    Every layer adds something of its own (a bias, the mean of an activation) and passes on a part
    of what differs between one sample and the next. Where that part shrinks by the same factor in
    each layer, it is gone after some: the last layers get the same numbers whatever the network was
    shown. They can learn the average answer and no more, and since backward passes the same layers,
    the first ones get next to no gradient either. The size of the activations shows nothing of
    this: it may be the same in every layer.

    ## How it is measured
    By the share of each output's mean square that differs between samples: the variance across the
    batch over the mean square, at sampled entries. It is 1 where the mean is 0, and 0 where all
    samples give the same. Outputs are taken in the order in which they come. Some layer must see
    the input (a share of at least 0.001); from a later one on, every output up to the model's own
    must have a share below `share`, what the last weight layer is given among them. Or `layers`
    weight layers in a row must each leave at most a tenth of the share before them, and nothing
    behind may bring it back. This must hold at three measured steps in a row, with at least 64
    samples in them together. The share is looked at in the first four measured steps and in every
    fourth after them, at least 16 steps apart. The finding names the weight layer from which on the
    input fades.

    ## How to fix
    Initialize for the activation in use. PyTorch's default for `nn.Linear` leaves a third of the
    mean square, and a ReLU half of that: nine such layers leave a ten-millionth, and the biases
    outweigh it. `nn.init.kaiming_normal_(weight, nonlinearity="relu")` with biases of 0 keeps it.
    Replace sigmoids between layers by ReLU, put a normalization before each activation, or add skip
    connections, which carry the input past the layers that lose it.

    ## False alarms
    Inputs that are all alike (one state of a game over and over) have no share to lose. An output
    layer that starts at zero gives the same for all, but what it is given does not; a branch that
    starts at zero has layers behind it that see the input past it. Positions and learned tokens
    are the same for every sample, and are passed by what differs. An output with a large mean (a
    price, a year) has a small share by itself, its hidden layers have not. A layer that puts out
    nothing but zeros is dead or not yet begun, which is F003's to tell. Not judged: outputs whose
    first axis is not the batch (a sequence-first model), and compiled models.

    ## References
    Schoenholz, Gilmer, Ganguli & Sohl-Dickstein, "Deep Information Propagation" (ICLR 2017). Poole
    et al., "Exponential expressivity in deep neural networks through transient chaos" (NeurIPS
    2016). He et al., "Delving deep into rectifiers" (ICCV 2015).
    """
    for model in run.models.values():
        step, fade = _fade(run, model, share, int(layers))
        batch = run.at("batch.size", Site(model.name)) if fade else None
        if fade and batch and batch.last * _HITS >= _SAMPLES:
            yield _evidence(model, step, fade)


def _fade(run: Run, model: ModelFacts, share: float, layers: int) -> tuple[int, _Fade | None]:
    """The fading at the newest step with shares, if there is one, and that step."""

    def find() -> tuple[int, _Fade | None]:
        step, path = _path(run, model, share, layers)
        fade = (_below(path, share) or _cut_by_cut(path, layers)) if path else None
        # Zeros are no fading: a dead layer, or one that starts at zero.
        is_zero = fade and _is_zero(run, Site(model.name, fade.blind.fqn), step)
        return step, None if is_zero else fade

    state = model, share, layers, run.additions("output.batch_share")
    return remembered(run, (_fade, model.name), state, find)


def _path(run: Run, model: ModelFacts, threshold: float, layers: int) -> tuple[int, list[_Layer]]:
    """The newest step with shares, and the outputs that have one there as they come.

    None of these where no share is small or falls often enough for `_below` or `_cut_by_cut`.
    """
    sites = _as_outputs_come(model)
    steps, shares = run.newest("output.batch_share", sites)
    step = int(steps.max(initial=NEVER))
    weighing = _weighing(model)
    found: list[_Layer] = []
    weighs = _weighs(model)[steps == step]
    if step == NEVER or _keeps(shares[steps == step], weighs, threshold, layers):
        return step, []
    for site, share in compress(zip(sites, shares.tolist(), strict=True), (steps == step).tolist()):
        known = not math.isnan(share)  # NaN where all that was looked at is 0
        if known or _is_zero(run, site, step):
            found.append(_Layer(site.fqn, share if known else 0.0, site.fqn in weighing))
    return step, found


def _keeps(shares: Reals, weighs: NDArray[np.bool_], threshold: float, layers: int) -> bool:
    """Whether the last weight layer sees the input, and few weight layers cut what they get."""
    import numpy as np

    through = shares[weighs]
    cuts = (through[1:] <= _CUT * through[:-1]).sum()
    known = not np.isnan(shares).any()
    return bool(known and len(through) and through[-1] >= threshold and cuts < layers)


@of_facts
def _weighs(model: ModelFacts) -> NDArray[np.bool_]:
    """Of each output as they come whether its module owns a weight matrix."""
    import numpy as np

    return np.array([site.fqn in _weighing(model) for site in _as_outputs_come(model)], np.bool_)


def _is_zero(run: Run, site: Site, step: int) -> bool:
    """Whether an output is nothing but zeros."""
    sizes = run.at("output.rms", site)
    return sizes is not None and sizes.at(step) == 0


@of_facts
def _weighing(model: ModelFacts) -> set[str]:
    """The modules that own a weight matrix."""
    return {param.module for param in model.params if len(param.shape) >= 2}


@of_facts
def _as_outputs_come(model: ModelFacts) -> tuple[Site, ...]:
    """The modules that were called, as they return: one that holds others comes after them."""
    called = {module.fqn for module in model.modules if module.order is not None}
    place = {fqn: own for fqn, own in network_order(model).items() if fqn in called}
    last = dict(place)
    for fqn, own in place.items():
        while fqn:
            fqn = fqn.rpartition(".")[0]
            last[fqn] = max(last.get(fqn, own), own)
    come = sorted(place, key=lambda fqn: (last[fqn], -fqn.count(".") - bool(fqn)))
    return tuple(Site(model.name, fqn) for fqn in come)


def _below(path: Sequence[_Layer], threshold: float) -> _Fade | None:
    """The fading to a share below `threshold` that lasts to the end, if there is one.

    The last weight layer may be blind by itself (it started at zero): its input must be, too.
    """
    seeing = max((i for i, layer in enumerate(path) if layer.share >= threshold), default=-1)
    last_weight = max((i for i, layer in enumerate(path) if layer.weighs), default=-1)
    before, blind = path[: seeing + 1], path[seeing + 1 :]
    if not before or seeing + 1 >= last_weight:
        return None
    most = max(layer.share for layer in before)
    # The first that sees about as much: which one sees most may change from step to step.
    start = next(i for i, layer in enumerate(before) if layer.share >= most / 2)
    at = next(layer for layer in path[start:] if layer.weighs)
    return _Fade(path[start], at, blind[0], (*blind,), threshold) if most >= _SEEN else None


def _cut_by_cut(path: Sequence[_Layer], layers: int) -> _Fade | None:
    """The fading in which so many weight layers in a row cut the share, and nothing restores it."""
    weighing = [layer for layer in path if layer.weighs]
    start, cuts = 0, 0
    for i, (before, after) in enumerate(pairwise(weighing), start=1):
        cuts = cuts + 1 if after.share <= _CUT * before.share else 0
        start = i if cuts == 0 else start
        if cuts == layers:
            return _below(path, weighing[start].share * _CUT**layers * 1.000001)
    return None


def _evidence(model: ModelFacts, step: int, fade: _Fade) -> Evidence:
    most = max(layer.share for layer in fade.behind)
    holders = {module.fqn.rpartition(".")[0] for module in model.modules} | {""}
    return Evidence(
        site=Site(model.name, fade.at.fqn),
        step=step,
        message=say(
            "the output of {model} hardly depends on its input: {start:.2g} of the mean square "
            "differs between samples at `{first}`, {share:.2g} at `{blind}` and at most {most:.2g} "
            "at every output from there to the end ({behind} in all; threshold {threshold:.1g})",
            model=model.name,
            start=fade.start.share,
            first=fade.start.fqn,
            share=fade.blind.share,
            blind=fade.blind.fqn,
            most=most,
            behind=len(fade.behind),
            threshold=fade.threshold,
        ),
        numbers={
            "share": fade.blind.share,
            "first_share": fade.start.share,
            "most_behind": most,
            "outputs_behind": len(fade.behind),
        },
        point=Point.OUTPUT,
        cause=say("Every layer passes on less of what differs between samples than it got."),
        fix=say(
            """\
# Before the optimizer is built; with ReLU, not sigmoid or tanh, between the layers:
for m in {model}.modules():
    if isinstance(m, (torch.nn.Linear, torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)):
        torch.nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
        if m.bias is not None:
            torch.nn.init.zeros_(m.bias)
# Or add skip connections or normalization layers.""",
            model=model.name,
        ),
        excluded=(
            say("inputs that are all alike"),
            say("an output layer that starts at zero"),
            say("branches that something leads past"),
        ),
        series=("output.batch_share",),
        layers=first_layers(layer.fqn for layer in fade.behind if layer.fqn not in holders),
        profiles=("output.batch_share",),
    )
