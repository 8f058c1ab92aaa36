"""G001: gradients fade on their way to the first layers."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Point, Site
from traindx.rules.gradients.depth import (
    LEARNED,
    LEAST_SLOPE,
    STEEP,
    VANISHED,
    VANISHING,
    DepthProfile,
    no_depth,
    vanishing,
)
from traindx.rules.rule import rule
from traindx.run import Run


@rule(
    "G001",
    severity=Severity.ERROR,
    reads=("grad.rms",),
    hits=3,
    applies=no_depth,
    silent_in=("zero-init",),
    explained_by=(
        "F001",
        "F003",
        "F005",
        "L007",
        "N004",
        "N010",
        "N011",
        "N012",
        "N017",
        "O016",
        "P001",
        "S002",
    ),
    remedies=("use-relu-he",),
)
def vanishing_depth(
    run: Run,
    *,
    slope: float = STEEP,
    ratio: float = VANISHING,
    vanished: float = VANISHED,
    loss: float = LEARNED,
) -> Iterator[Evidence]:
    """The gradient shrinks layer by layer until the first layers hardly move.

    ## Why it matters
    Backward multiplies one Jacobian a layer. Where each shrinks the gradient by the same factor,
    the first layers get an exponentially smaller one than the last: they stay at their random
    start, and whatever the last layers learn they learn from noise.

    ## How it is measured
    On the RMS of the gradient (so that the size of a layer does not matter) of at least 4 weight
    matrices of one module kind in one model, in the order of their first call. Along that order it
    must rise by at least `slope` decades (powers of ten) per layer by least squares, and the first
    over the last must be below `ratio`, at three measured steps in a row. In a deep net a slow
    decay adds up: below `vanished` any slope of more than 0.05 decades per layer is enough. An
    exact zero counts as the least positive float32, and of several in front only the last one
    enters the slope. Silent once the loss is at `loss` of its first value or below: the model has
    learned all the same. Not evaluated where no gradient is finite.

    ## How to fix
    Use ReLU or GELU in place of sigmoid or tanh, with the initialization that suits them
    (`nn.init.kaiming_normal_(weight, nonlinearity="relu")`), put a normalization layer before each
    activation, or add skip connections.

    ## False alarms
    Late in training all gradients fall, which is why layers are compared with each other and not
    with a constant. A layer or branch that starts at zero (a head, LoRA) lets no gradient through
    in the first step and little in those after: the rule is silent there until the weight has
    grown, or for 100 steps (context `zero-init`). Frozen layers and embeddings are left out. Layers
    of one kind that stand side by side (many heads) are no depth, yet look like one if their
    gradients happen to be sorted.

    ## References
    Hochreiter, "Untersuchungen zu dynamischen neuronalen Netzen" (1991). Glorot & Bengio,
    "Understanding the difficulty of training deep feedforward neural networks" (AISTATS 2010).
    Zhang et al., "AutoTrainer" (ICSE 2021), for the ratio of 1e-3. CS231n, "Neural Networks
    Part 3".
    """
    for model in run.models.values():
        profiles = vanishing(run, model, slope=slope, ratio=ratio, vanished=vanished, loss=loss)
        for profile in profiles:
            steep = profile.ratio < ratio and profile.slope >= slope
            thresholds = (ratio, slope) if steep else (vanished, LEAST_SLOPE)
            yield _evidence(profile, *thresholds)


def _evidence(profile: DepthProfile, ratio: float, slope: float) -> Evidence:
    first, last, layers = profile.params[0], profile.params[-1], len(profile.params)
    return Evidence(
        site=Site(profile.model, first.module),
        step=profile.step,
        message=say(
            "gradient RMS is {first_rms:.2g} at `{first}` and {last_rms:.2g} at `{last}`: a ratio "
            "of {ratio:.2g} (threshold {least_ratio:g}), falling by {slope:.2f} decades per layer "
            "(threshold {least_slope:g}) over {layers} {kind} weights",
            first_rms=profile.rms[0],
            first=first.fqn,
            last_rms=profile.rms[-1],
            last=last.fqn,
            ratio=profile.ratio,
            least_ratio=ratio,
            slope=profile.slope,
            least_slope=slope,
            layers=layers,
            kind=profile.kind,
        ),
        numbers={
            "ratio": profile.ratio,
            "slope": profile.slope,
            "first": profile.rms[0],
            "last": profile.rms[-1],
            "layers": layers,
        },
        point=Point.GRAD,
        cause=say("Every layer shrinks the gradient that passes it."),
        fix=say(
            "Use ReLU with `nn.init.kaiming_normal_(weight, nonlinearity='relu')`, normalization "
            "layers, or skip connections."
        ),
        excluded=(
            say("the loss has fallen all the same"),
            say("frozen layers"),
            say("zero-initialized branches"),
        ),
        series=("grad.rms", "loss"),
        layers=profile.modules,
        profiles=("grad.rms",),
    )
