"""N019: running statistics are those of the last batch or two, and as noisy."""

from __future__ import annotations

import math
from collections.abc import Iterator

from traindx.facts import ModelFacts, ModuleFacts
from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import say
from traindx.records import Site
from traindx.rules.normalization.running import (
    never_evaluated,
    normalizes_by_batch,
    running_norms,
    samples_of,
)
from traindx.rules.order import of_facts
from traindx.rules.rule import rule
from traindx.run import Run

_WINDOW = 10


@rule(
    "N019",
    severity=Severity.WARNING,
    reads=("norm.updates",),
    applies=never_evaluated,
    explained_by=("N003",),
    lasting=True,
)
def bn_momentum_high(run: Run, *, momentum: float = 0.5, noise: float = 0.15) -> Iterator[Evidence]:
    """Running statistics are those of the last batch or two, and as noisy.

    ## Why it matters
    In PyTorch `momentum` is the weight of the new value. 0.9 or 0.99, as Keras, Flax and ONNX write
    what is 0.1 or 0.01 here, leaves the running statistics with a memory of one or two batches.
    Evaluation then depends on which batch came last, and jumps from one to the next.

    ## How it is measured
    From the setting, which must exceed the option `momentum`, and from the size of a batch: of N
    independent samples a batch's statistics are off by sqrt(1.5/N) standard deviations, and running
    ones by that times sqrt(m/(2 - m)), which must exceed `noise`. N is the batch size B, or sqrt(B
    n) where the layer's output shows that it averages n elements a channel.

    ## How to fix
    Use 1 - m: `momentum=0.1` is what other frameworks call 0.9. For a longer memory than the ten
    batches of that, take 0.01 to 0.05.

    ## False alarms
    With large batches a short memory does no harm, and is not reported. A momentum raised for a
    last pass without gradient is not seen in training.

    ## References
    Ioffe & Szegedy, "Batch Normalization" (ICML 2015), section 3.1. PyTorch documentation,
    `torch.nn.BatchNorm1d`; Keras documentation, `BatchNormalization`, each on `momentum`.
    """
    for model in run.models.values():
        noisy: dict[str, float] = {}
        weight = 0.0
        for norm, own in _momenta(model):
            site = Site(model.name, norm.fqn)
            if not momentum < own <= 1:
                continue
            updates = run.at("norm.updates", site)
            if updates is None or updates.last < 1 or not normalizes_by_batch(run, site):
                continue
            samples = samples_of(run, site, norm, updates.step + 1, _WINDOW)
            if samples:
                off = math.sqrt(1.5 / samples * own / (2 - own))
                if off > noise:
                    noisy[norm.fqn], weight = off, own
        if noisy:
            first, worst = next(iter(noisy)), max(noisy.values())
            yield Evidence(
                site=Site(model.name, first),
                step=run.step,
                message=say(
                    "with momentum={momentum:g} the running statistics of {count} normalization "
                    "layers are those of the last batch or two, and off by {noise:.2f} standard "
                    "deviations by chance alone (threshold {threshold:g})",
                    momentum=weight,
                    count=len(noisy),
                    noise=worst,
                    threshold=noise,
                ),
                numbers={"noise": worst, "momentum": weight, "layers": len(noisy)},
                cause=say("In PyTorch `momentum` is the weight of the new value."),
                fix=say("momentum={other:.3g}", other=1 - weight),
                excluded=(say("large batches"),),
                layers=first_layers(noisy),
            )


@of_facts
def _momenta(model: ModelFacts) -> list[tuple[ModuleFacts, float]]:
    """The layers that keep running statistics, with the momentum of each."""
    momenta = ((norm, norm.options.get("momentum")) for norm in running_norms(model))
    return [(norm, own) for norm, own in momenta if isinstance(own, float)]
