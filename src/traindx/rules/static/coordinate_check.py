"""S008: what a step changes in a layer grows with the width of the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import listed, say
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule("S008", severity=Severity.INFO, reads=("probe.width_exponent",), source="probe")
def coordinate_check(run: Run, *, exponent: float = 0.25) -> Iterator[Evidence]:
    """What a few steps change in a layer's output grows with the width of the model.

    ## Why it matters
    A learning rate that was found with a narrow model is then too large for a wide one, and the
    best rate has to be searched for at every size. In the maximal-update parametrization every
    layer's output changes by as much at each width, so that the rate of a small model serves a
    large one.

    ## How it is measured
    By preflight, where the target is a function with an argument for the width (`width`, `hidden`,
    `d_model`, …, or the one that `--width-argument` names): models of three widths, each a factor
    2 apart, take 4 steps of the target's own optimizer on one batch, three times with other seeds.
    Of each layer with weights, the RMS of the change of its output is fitted by a power of the
    width. It is told if the exponent lies above `exponent` by more than two standard errors. It is
    information, since torch's own initialization and rates do grow; it is a warning if the
    optimizer's rates depend on the width, so that they are meant to make up for it.

    ## How to fix
    With Adam: for hidden matrices a rate in proportion to 1 / width, and an output layer whose
    initial weights and rate have a factor 1 / width each. With SGD the rate of the output layer
    goes with 1 / width, that of the first with width. Or search for the rate at each size.

    ## False alarms
    At a rate so high that the loss diverges, changes say nothing. Over a factor of 4 in width the
    exponents of small models are not those of large ones yet.

    ## References
    Yang & Hu, "Feature learning in infinite-width neural networks" (ICML 2021). Yang et al.,
    "Tensor Programs V: tuning large neural networks via zero-shot hyperparameter transfer" (2022),
    table 3 and appendix D.1, the coordinate check.
    """
    for seen in observations(run, "coordinate-check"):
        if seen.number("least") > exponent:
            yield _evidence(seen, exponent)


def _evidence(seen: Observation, exponent: float) -> Evidence:
    found, least = seen.number("exponent"), seen.number("least")
    changes = [f"{change:.3g}" for change in _numbers(seen, "changes")]
    layers = seen.detail.get("layers")
    rows = cast("list[tuple[str, float, float]]", layers) if isinstance(layers, list) else []
    growing = [fqn for fqn, _, low in rows if low > exponent]
    scaled = bool(seen.detail.get("scaled"))
    return Evidence(
        site=seen.site,
        step=STEP,
        message=say(
            "what {steps} steps of {optimizer} change in the output of `{layer}` grows as "
            "{argument}^{found:.2f} ({changes} at {widths}), and so it is in {growing} of {layers} "
            "layers",
            steps=int(seen.number("steps")),
            optimizer=seen.text("optimizer"),
            layer=seen.site.fqn or seen.site.model,
            argument=seen.text("argument"),
            found=found,
            changes=listed(changes),
            widths=listed(f"{width:g}" for width in _numbers(seen, "widths")),
            growing=len(growing),
            layers=len(rows),
        ),
        numbers={"exponent": found, "least": least},
        cause=say("The rates depend on the width, but not as they need to.")
        if scaled
        else say("The learning rate and the initial weights are those of one width."),
        fix=say(
            "# With Adam, for a model {argument} times as wide as the one that was tuned:\n"
            "# lr of hidden matrices / {argument}; lr and initial weights of the last / {argument}",
            argument=seen.text("argument"),
        ),
        excluded=(say("chance: three seeds agree"),),
        severity=Severity.WARNING if scaled else Severity.INFO,
        layers=first_layers(growing),
    )


def _numbers(seen: Observation, name: str) -> list[float]:
    found = seen.detail.get(name)
    return cast("list[float]", found) if isinstance(found, list) else []
