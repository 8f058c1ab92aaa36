"""N011: the weights of normalizations start at zero everywhere, or are decayed away."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from traindx.facts import ModelFacts
from traindx.findings import Evidence, Severity, first_layers
from traindx.ledger import NEVER
from traindx.messages import Message, say
from traindx.records import Site
from traindx.rules.normalization.scale import has_weight, normalizations, weight_site
from traindx.rules.order import of_facts
from traindx.rules.remembered import remembered
from traindx.rules.rule import rule
from traindx.run import Run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@rule(
    "N011",
    severity=Severity.WARNING,
    reads=("param.rms",),
    explained_by=("O001", "O016"),
    lasting=True,
)
def affine_collapse(
    run: Run, *, ratio: float = 0.1, share: float = 0.2, steps: float = 10
) -> Iterator[Evidence]:
    """The weights of normalizations are next to nothing, and let nothing through.

    ## Why it matters
    The weight of a normalization is the size of what it lets through. Where it is zero, the output
    is the bias alone, the same for every input, and no gradient passes to the layers before it.
    Weight decay pulls it there as it does every weight, though its size is not what overfits. At
    the end of a residual branch a weight of zero is a good start; in every layer it is none, since
    nothing goes around.

    ## How it is measured
    On the RMS of each weight. Either all of a model's weights of normalizations (two or more) were
    under `ratio` at the first step and still are after `steps` steps, which is an error if all were
    exactly zero. Or at least a share `share` of them has fallen under `ratio` of its size at the
    first step while an optimizer decays them. One finding per model, at the first such layer.

    ## How to fix
    Start at 1 wherever no skip connection goes around, and initialize the parameters of two
    dimensions or more only. Give weights of normalizations and biases a
    group without weight decay.

    ## False alarms
    Zero at the end of residual branches only is not reported. Pruning by the weights of
    normalizations (Liu et al. 2017) shrinks them on purpose, by a penalty in the loss and not by
    weight decay.

    ## References
    Goyal et al., "Accurate, large minibatch SGD" (2017), section 5.1, on the zero start of the last
    BatchNorm of a branch. He et al., "Bag of tricks for image classification with convolutional
    neural networks" (2019), section 3.1, on no decay of weights of normalizations. Liu et al.,
    "Learning efficient convolutional networks through network slimming" (2017).
    """
    for model in run.models.values():
        if _all_large(run, model, ratio):  # as of nearly all: their past need not be looked at
            continue
        sizes = {
            norm.fqn: size
            for norm in normalizations(model)
            if has_weight(model, norm)
            and (size := run.at("param.rms", weight_site(model, norm))) is not None
        }
        if not sizes or max(size.step for size in sizes.values()) < steps:
            continue
        firsts, lasts = ([getattr(s, end) for s in sizes.values()] for end in ("first", "last"))
        if len(sizes) > 1 and max(*firsts, *lasts) < ratio:
            yield _small_from_the_start(model, list(sizes), run.step, firsts)
            continue
        fallen = [
            fqn
            for fqn, size in sizes.items()
            if size.first > 0 and size.last < ratio * size.first and _decay(run, model, fqn)
        ]
        if fallen and len(fallen) >= share * len(sizes):
            size = sizes[fallen[0]]
            told = say(
                "weight decay has brought the weights of {count} of {norms} normalization layers "
                "under {ratio:g} of their first size, of `{first}` to {left:.2g} of it",
                count=len(fallen),
                norms=len(sizes),
                ratio=ratio,
                first=fallen[0],
                left=size.last / size.first,
            )
            yield _evidence(model, fallen, run.step, told, Severity.WARNING)


def _all_large(run: Run, model: ModelFacts, ratio: float) -> bool:
    """Whether no weight has fallen under `ratio` of its first size, nor are all under it."""
    newest = run.newest("param.rms", _weights(model))
    there = newest.steps != NEVER
    firsts = remembered(
        run, (_all_large, model.name), (model, there.tobytes()), partial(_firsts, run, model)
    )
    sizes = newest.values[there]
    return bool((sizes >= ratio * firsts).all() and (sizes >= ratio).any())


@of_facts
def _weights(model: ModelFacts) -> tuple[Site, ...]:
    return tuple(
        weight_site(model, norm) for norm in normalizations(model) if has_weight(model, norm)
    )


def _firsts(run: Run, model: ModelFacts) -> NDArray[np.float64]:
    """The first sizes of those that were measured."""
    import numpy as np

    series = (run.at("param.rms", site) for site in _weights(model))
    return np.array([found.first for found in series if found], np.float64)


def _small_from_the_start(
    model: ModelFacts, layers: list[str], step: int, firsts: list[float]
) -> Evidence:
    if not any(firsts):
        told = say(
            "the weights of all {count} normalization layers were 0 at the first step and have "
            "stayed near it",
            count=len(layers),
        )
        return _evidence(model, layers, step, told, Severity.ERROR)
    told = say(
        "the weights of all {count} normalization layers were small at the first step, {size:.2g} "
        "at most (RMS), and have stayed so",
        count=len(layers),
        size=max(firsts),
    )
    return _evidence(model, layers, step, told, Severity.WARNING, drawn=True)


def _decay(run: Run, model: ModelFacts, fqn: str) -> bool:
    """Whether an optimizer that holds a layer's weight decays anything."""
    weight = f"{fqn}.weight".removeprefix(".")
    holders = {name for p in model.params if p.fqn == weight for name in p.optimizers}
    groups = [group for name in holders & run.optimizers.keys() for group in _groups(run, name)]
    return any(
        isinstance(d := group.get("weight_decay"), int | float) and d > 0 for group in groups
    )


def _groups(run: Run, optimizer: str) -> tuple[dict[str, object], ...]:
    return tuple(dict(group) for group in run.optimizers[optimizer].groups)


def _evidence(
    model: ModelFacts,
    layers: list[str],
    step: int,
    message: Message,
    severity: Severity,
    *,
    drawn: bool = False,
) -> Evidence:
    started_small = drawn or severity is Severity.ERROR
    return Evidence(
        site=Site(model.name, layers[0]),
        step=step,
        message=message,
        numbers={"layers": len(layers)},
        cause=_cause(drawn, severity),
        fix=(
            say(
                """\
for m in {model}.modules():
    if hasattr(m, "eps") and getattr(m, "weight", None) is not None:
        torch.nn.init.ones_(m.weight)""",
                model=model.name,
            )
            if started_small
            else say(
                """\
vectors = [p for p in {model}.parameters() if p.dim() < 2]
matrices = [p for p in {model}.parameters() if p.dim() > 1]
groups = [{{"params": matrices}}, {{"params": vectors, "weight_decay": 0.0}}]""",
                model=model.name,
            )
        ),
        excluded=(say("a zero start at the end of residual branches"),),
        series=("param.rms",),
        severity=severity,
        layers=first_layers(layers),
    )


def _cause(drawn: bool, severity: Severity) -> Message:
    if drawn:
        return say("An initialization meant for matrices has drawn them, too.")
    if severity is Severity.ERROR:
        return say("No skip connection goes around them, so nothing passes.")
    return say("They are in a group with weight decay.")
