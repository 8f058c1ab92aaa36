"""N017: frozen running statistics are not those of what the layers are given."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median

from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import say
from traindx.records import Site
from traindx.rules.normalization.running import no_running_norm, running_norms
from traindx.rules.rule import rule
from traindx.run import Run


@rule(
    "N017",
    severity=Severity.WARNING,
    reads=("norm.frozen_gap",),
    applies=no_running_norm,
    explained_by=("N004",),
    lasting=True,
)
def frozen_statistics_misfit(
    run: Run, *, gap: float = 2.0, error_gap: float = 5.0
) -> Iterator[Evidence]:
    """Frozen BatchNorm statistics are far from those of the data that the layers are given.

    ## Why it matters
    A pretrained network in eval mode normalizes by the statistics of the data it was trained on. If
    its inputs are prepared in another way now (pixels from 0 to 255 and not standardized, channels
    in another order, another sampling rate), its layers see numbers that they never saw, and its
    features mean little. Nothing fails; the network only fits badly.

    ## How it is measured
    Of layers that train in eval mode: what they make of a batch, before weight and bias, has a mean
    and a deviation in each channel, 0 and 1 if the statistics fit. The RMS over channels of the
    distance from that must exceed `gap` in the median of the last three measurements; over
    `error_gap` it is an error. One finding per model, at its first such layer.

    ## How to fix
    Prepare inputs exactly as in pretraining, with the mean and deviation that belong to the
    weights.

    ## False alarms
    Data of another kind than those of pretraining have other statistics, too, by a standard
    deviation or less in most channels. Statistics that no batch has ever updated are told by N004.

    ## References
    Ioffe & Szegedy, "Batch Normalization" (ICML 2015), section 3.1. Documentation of
    torchvision's pretrained weights, on the transforms that belong to them.
    """
    for model in run.models.values():
        far: dict[str, float] = {}
        for norm in running_norms(model):
            series = run.at("norm.frozen_gap", Site(model.name, norm.fqn))
            flags = run.at("norm.training", Site(model.name, norm.fqn))
            if series is None or flags is None or flags.last:
                continue
            known = [value for value in series.tail(3) if math.isfinite(value)]
            if known and median(known) > gap:
                far[norm.fqn] = median(known)
        if far:
            first, worst = next(iter(far)), max(far, key=lambda fqn: far[fqn])
            grave = far[worst] > error_gap
            yield Evidence(
                site=Site(model.name, first),
                step=run.step,
                message=say(
                    "what {count} frozen normalization layers make of a batch is off by up to "
                    "{gap:.3g} standard deviations, at `{worst}` (threshold {threshold:g})",
                    count=len(far),
                    gap=far[worst],
                    worst=worst,
                    threshold=error_gap if grave else gap,
                ),
                numbers={"gap": far[worst], "layers": len(far)},
                cause=say("The inputs are prepared otherwise than those of pretraining."),
                fix=say(
                    "images = (images / 255 - mean) / std  # of the weights' own preprocessing"
                ),
                excluded=(say("layers that normalize by the batch"),),
                series=("norm.frozen_gap",),
                severity=Severity.ERROR if grave else Severity.WARNING,
                layers=first_layers(far),
            )
