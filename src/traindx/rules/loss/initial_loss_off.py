"""L001: before training, the loss is not what a guess would have."""

from __future__ import annotations

import math
from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import Message, say
from traindx.records import Site
from traindx.rules.probed import STEP, Observation, observation
from traindx.rules.rule import rule
from traindx.run import Run


@rule(
    "L001",
    severity=Severity.WARNING,
    reads=("probe.initial_loss",),
    source="probe",
    explained_by=("F002", "L002", "L003", "L007", "L008", "L010", "L020", "N013", "N017"),
)
def initial_loss_off(run: Run, *, above: float = 1.0, below: float = 0.5) -> Iterator[Evidence]:
    """Before training, the loss is far from that of a guess that looks at nothing.

    ## Why it matters
    A classifier that has learned nothing should give each of C classes the probability 1/C, and
    have the loss ln C: 2.303 for 10 classes. One that starts far above is sure of what it does not
    know: its outputs are too large, from inputs that are not scaled or an initialization that is
    too wide, and the first part of training goes into taking that back. One that starts far below
    has seen the answers: it is trained already, or the target is among its inputs.

    ## How it is measured
    By preflight, on one batch before the first step: the value of the loss function by itself,
    per term, without penalties and other terms, in nats. It should be within `above` over and
    `below` under ln C (ln 2 of binary losses). The finding tells how far the outputs are spread,
    which is what an excess comes from.

    ## How to fix
    Above: bring the inputs to zero mean and a standard deviation of 1, and initialize the last
    layer small (or with zeros). Below: look whether the target, or something made from it, is part
    of the input; of a pretrained model it is as it should be.

    ## False alarms
    Class weights and label smoothing change what a guess pays: with class weights nothing is said.
    A pretrained model starts below chance, which is why that is told as information only. Where all
    samples of the batch have the same target, as the positives of a contrastive loss, a guess may
    know it, and no loss is too low. With a batch of a few samples the loss of a guess scatters,
    too.

    ## References
    CS231n notes, "Neural Networks Part 3: Learning and Evaluation", section "Before learning:
    sanity checks". Karpathy, "A Recipe for Training Neural Networks" (2019), "verify loss @ init".
    """
    for series in run.series("probe.initial_loss"):
        site = series.site
        seen, chance = observation(run, "loss-at-chance", site), run.at("probe.chance_loss", site)
        if seen is None or chance is None or seen.detail.get("weighted"):
            continue
        excess = series.last - chance.last
        if math.isnan(excess) or excess > above:
            yield _above(run, site, seen, series.last, chance.last)
        elif excess < -below and not seen.detail.get("one_class"):
            yield _below(site, seen, series.last, chance.last)


def _above(run: Run, site: Site, seen: Observation, loss: float, chance: float) -> Evidence:
    spread = run.at("probe.logit_std", site)
    std = spread.last if spread is not None else math.nan
    return Evidence(
        site=site,
        step=STEP,
        message=say(
            "before training the loss of {model} is {loss:.4g}, and a guess over {guess} would "
            "have {chance:.4g}: what the loss is given has a standard deviation of {std:.3g}",
            model=site.model,
            loss=loss,
            guess=_classes(seen),
            chance=chance,
            std=std,
        ),
        numbers={"initial_loss": loss, "chance_loss": chance, "logit_std": std},
        cause=say(
            "The outputs of {model} are large before anything is learned: its inputs are not "
            "scaled, or its last layer starts too wide.",
            model=site.model,
        ),
        fix=say(
            "x = (x - mean) / std  # per feature, of the training data\n"
            "nn.init.normal_(head.weight, std=0.01); nn.init.zeros_(head.bias)  # the last layer"
        ),
        excluded=(say("penalties and other terms of the loss"), say("class weights")),
    )


def _below(site: Site, seen: Observation, loss: float, chance: float) -> Evidence:
    return Evidence(
        site=site,
        step=STEP,
        message=say(
            "before training the loss of {model} is {loss:.4g}, below the {chance:.4g} of a guess "
            "over {guess}",
            model=site.model,
            loss=loss,
            chance=chance,
            guess=_classes(seen),
        ),
        numbers={"initial_loss": loss, "chance_loss": chance},
        cause=say("The model is trained already, or it is given what it should predict."),
        fix=say("Of a model that is not pretrained: look for the target among its inputs."),
        severity=Severity.INFO,
    )


def _classes(seen: Observation) -> Message:
    return say("{n} classes", n=round(seen.number("classes")))
